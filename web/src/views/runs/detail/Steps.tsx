/** Steps of a run as a waterfall: bars over time, and what the run waited for before them. */
import type { Run, Step } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { duration, FINAL, StateBadge, useNow, type Shown } from "../../../ui";
import { RunLink } from "../RunLink";
import { runsWords } from "../words";

const looks: Record<string, Shown> = { pending: "queued", running: "running", succeeded: "succeeded", failed: "failed", skipped: "skipped", cancelled: "cancelled" };
/** A wait of a smaller share of the whole, or of fewer milliseconds, is not told. */
const LEAST = 0.01;
const BRIEF = 100;

interface Span {
  from: number;
  to: number;
}

interface Waterfall {
  begin: number;
  end: number;
  /** Time in the queue. */
  queued: Span | null;
  /** Wait before each step, by its id. */
  waits: Map<string, Span>;
}

/** Lay the steps out. A step waits from the end of the last step before it, or from the start of its attempt: steps of
 * earlier attempts ended before the last one began. */
export function waterfall(run: Run, steps: Step[], now: number): Waterfall {
  const own = steps.filter((step) => step.started_at && !step.kept_from);
  const due = Math.max(Date.parse(run.created_at), Date.parse(run.run_at));
  const began = run.started_at ? Date.parse(run.started_at) : Math.min(...own.map((step) => Date.parse(step.started_at!)));
  const begin = Math.min(due, began);
  const ends = own.map((step) => Date.parse(step.finished_at ?? step.started_at!));
  const end = Math.max(run.finished_at ? Date.parse(run.finished_at) : FINAL.has(run.state) ? 0 : now, begin + 1, ...ends);
  const least = Math.max(BRIEF, (end - begin) * LEAST);
  const waits = new Map<string, Span>();
  for (const step of own) {
    const to = Date.parse(step.started_at!);
    const from = Math.max(to < began ? 0 : began, ...ends.filter((other) => other <= to));
    if (from && to - from >= least) waits.set(step.id, { from, to });
  }
  return { begin, end, queued: began - due >= least ? { from: due, to: began } : null, waits };
}

export function Steps({ run, steps }: { run: Run; steps: Step[] }) {
  const t = useWords(runsWords);
  const now = useNow();
  const laid = waterfall(run, steps, now);
  const share = (value: number) => `${Math.max(0, Math.min(100, ((value - laid.begin) / (laid.end - laid.begin)) * 100)).toFixed(2)}%`;
  return (
    <table className="table run-steps" aria-label={t.steps}>
      <thead className="unseen">
        <tr>
          <th scope="col">{t.step}</th>
          <th scope="col">{t.state}</th>
          <th scope="col">{t.progress}</th>
          <th scope="col">{t.took}</th>
        </tr>
      </thead>
      <tbody>
        {laid.queued && (
          <tr>
            <th scope="row" className="quiet">
              {run.attempt > 1 ? t.earlier(run.attempt - 1) : t.inQueue}
            </th>
            <td />
            <td className="run-wide">
              <span className="run-track">
                <Wait span={laid.queued} share={share} />
              </span>
            </td>
            <td className="number">{duration(laid.queued.to - laid.queued.from)}</td>
          </tr>
        )}
        {steps.map((step) => (
          <StepRow key={step.id} step={step} wait={laid.waits.get(step.id)} end={laid.end} now={now} over={FINAL.has(run.state)} share={share} />
        ))}
      </tbody>
    </table>
  );
}

function Wait({ span: { from, to }, share }: { span: Span; share: (value: number) => string }) {
  return <i className="run-waited" style={{ left: share(from), width: `calc(${share(to)} - ${share(from)})` }} />;
}

interface RowProps {
  step: Step;
  wait: Span | undefined;
  end: number;
  now: number;
  over: boolean;
  share: (value: number) => string;
}

function StepRow({ step, wait, end, now, over, share }: RowProps) {
  const t = useWords(runsWords);
  const from = step.started_at ? Date.parse(step.started_at) : null;
  const to = step.finished_at ? Date.parse(step.finished_at) : over ? end : Math.max(now, from ?? 0);
  const state = looks[step.state] ?? "queued";
  const howFar = step.state === "running" && step.percentage !== null ? `${Math.floor(step.percentage)}%` : null;
  const told = [howFar, wait && t.waitedFor(duration(wait.to - wait.from)), step.summary].filter(Boolean).join(" · ");
  return (
    <tr data-step={step.id}>
      <th scope="row" className="hostile">
        {step.name || step.id}
        {step.kept_from && (
          <span className="quiet">
            {" "}
            {t.keptFrom} <RunLink id={step.kept_from} />
          </span>
        )}
      </th>
      <td>
        <StateBadge state={state} word={step.state === "pending" ? t.pending : undefined} />
      </td>
      <td className="run-wide">
        {from !== null && !step.kept_from && (
          <span className="run-track" data-state={step.state}>
            {wait && <Wait span={wait} share={share} />}
            <i style={{ left: share(from), width: `max(3px, calc(${share(to)} - ${share(from)}))` }} />
          </span>
        )}
        <span className="quiet hostile">{told}</span>
      </td>
      <td className="number">{from === null || step.kept_from ? "–" : duration(to - from)}</td>
    </tr>
  );
}
