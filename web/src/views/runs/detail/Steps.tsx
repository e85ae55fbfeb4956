/** Steps of a run as bars over time. */
import type { Run, Step } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { duration, FINAL, StateBadge, useNow, type Shown } from "../../../ui";
import { RunLink } from "../RunLink";
import { runsWords } from "../words";

const looks: Record<string, Shown> = { pending: "queued", running: "running", succeeded: "succeeded", failed: "failed", skipped: "skipped", cancelled: "cancelled" };

export function Steps({ run, steps }: { run: Run; steps: Step[] }) {
  const t = useWords(runsWords);
  const now = useNow();
  const known = steps.filter((step) => step.started_at);
  const begin = Math.min(...known.map((step) => Date.parse(step.started_at!)));
  const end = Math.max(FINAL.has(run.state) ? 0 : now, begin + 1, ...known.map((step) => Date.parse(step.finished_at ?? step.started_at!)));
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
        {steps.map((step) => (
          <StepRow key={step.id} step={step} begin={begin} end={end} now={now} over={FINAL.has(run.state)} />
        ))}
      </tbody>
    </table>
  );
}

function StepRow({ step, begin, end, now, over }: { step: Step; begin: number; end: number; now: number; over: boolean }) {
  const t = useWords(runsWords);
  const from = step.started_at ? Date.parse(step.started_at) : null;
  const to = step.finished_at ? Date.parse(step.finished_at) : over ? end : Math.max(now, from ?? 0);
  const share = (value: number) => `${Math.max(0, Math.min(100, ((value - begin) / (end - begin)) * 100)).toFixed(2)}%`;
  const state = looks[step.state] ?? "queued";
  const howFar = step.state === "running" && step.percentage !== null ? `${Math.floor(step.percentage)}%` : null;
  const told = [howFar, step.summary].filter(Boolean).join(" · ");
  return (
    <tr>
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
            <i style={{ left: share(from), width: `max(3px, calc(${share(to)} - ${share(from)}))` }} />
          </span>
        )}
        <span className="quiet hostile">{told}</span>
      </td>
      <td className="number">{from === null || step.kept_from ? "–" : duration(to - from)}</td>
    </tr>
  );
}
