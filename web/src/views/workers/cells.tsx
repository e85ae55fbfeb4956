/** Cells of a worker for the list and the page. */
import type { Worker, WorkerState } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link } from "../../router";
import { part } from "../../api/client";
import { Badge, type Shown, type Tone } from "../../ui";
import { workersWords } from "./words";

const LOOKS: Record<WorkerState, [Tone, Shown]> = {
  working: ["good", "running"],
  draining: ["warn", "waiting"],
  stopping: ["warn", "cancelling"],
  gone: ["bad", "expired"],
};

export function WorkerBadge({ state }: { state: WorkerState }) {
  const t = useWords(workersWords);
  const [tone, shape] = LOOKS[state];
  return (
    <Badge tone={tone} shape={shape}>
      {t[state]}
    </Badge>
  );
}

/** Used slots as a number and a bar. */
export function Slots({ worker }: { worker: Worker }) {
  const t = useWords(workersWords);
  const share = worker.slots ? Math.min(100, (worker.held / worker.slots) * 100) : 0;
  return (
    <span className="workers-slots" title={t.slotsUsed(worker.held, worker.slots)}>
      <span>
        {worker.held}
        <span className="quiet"> / {worker.slots}</span>
      </span>
      <span className="workers-bar" aria-hidden="true">
        <i style={{ width: `${share}%` }} />
      </span>
    </span>
  );
}

export function QueueNames({ queues }: { queues: Record<string, number> }) {
  const t = useWords(workersWords);
  return (
    <span className="workers-queues">
      {Object.entries(queues).map(([name, weight]) => (
        <Link key={name} className="tag" to={`/queues/${part(name)}`} title={`${name} · ${t.weight(weight)}`}>
          <span className="clip">{name}</span>
          {weight !== 1 && <span className="quiet">&nbsp;×{weight}</span>}
        </Link>
      ))}
    </span>
  );
}

/** Return the pending request to a worker, in words. */
export function useAsked(worker: Worker): string | null {
  const t = useWords(workersWords);
  const wanted = worker.asked?.state;
  if (!wanted || worker.state === "gone" || wanted === worker.state) return null;
  const what = { working: t.askedWork, draining: t.askedDrain, stopping: t.askedStop, gone: t.askedStop }[wanted];
  return t.asked(what, worker.asked_by ?? t.somebody);
}
