/** List of queues: waiting runs, longest wait and workers. */
import { part } from "../../api/client";
import { useMay } from "../../api/hooks";
import type { Queue } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link } from "../../router";
import { Card, DataTable, EmptyState, PageHeader, ProblemNotice, type Column } from "../../ui";
import { useQueues, useServing } from "./hooks";
import { allowed } from "./LimitNotice";
import { runsOf } from "./links";
import { PauseButton } from "./PauseButton";
import { Oldest, QueueBadge } from "./QueueBadge";
import { limitWords, queuesWords, viewName } from "./words";
import "./queues.css";

export function QueuesPage() {
  const t = useWords(queuesWords);
  const name = useWords(viewName).name;
  const may = useMay("operator");
  const queues = useQueues();
  const serving = useServing();
  const rows = serving && queues.data?.items;
  const count = (id: "queued" | "scheduled" | "running", title: string, priority?: "low"): Column<Queue> => ({
    id,
    name: title,
    number: true,
    priority,
    sortBy: (queue) => queue[id],
    cell: (queue) => (queue[id] ? <Link to={runsOf(queue.queue, id)}>{queue[id].toLocaleString("en")}</Link> : <span className="quiet">0</span>),
  });
  const columns: Column<Queue>[] = [
    { id: "name", name: t.queue, cell: (queue) => <Name queue={queue} />, sortBy: (queue) => queue.queue },
    { id: "state", name: t.state, cell: (queue) => <QueueBadge queue={queue} served={!!serving?.(queue.queue).length} /> },
    count("queued", t.queued),
    count("scheduled", t.scheduled, "low"),
    count("running", t.running, "low"),
    { id: "oldest", name: t.oldest, cell: (queue) => <Oldest queue={queue} />, number: true, priority: "low", sortBy: (queue) => queue.oldest_at && -Date.parse(queue.oldest_at) },
    { id: "workers", name: t.workers, cell: (queue) => serving?.(queue.queue).length, number: true, priority: "low" },
    ...(may ? [{ id: "actions", name: t.actions, cell: (queue: Queue) => <PauseButton queue={queue} small />, number: true, priority: "low" as const }] : []),
  ];
  return (
    <>
      <PageHeader title={name} about={t.about} />
      {queues.error && <ProblemNotice problem={queues.error} onRetry={() => void queues.refetch()} />}
      {!(queues.error && !rows) && (
        <Card bare>
          <DataTable
            label={name}
            columns={columns}
            rows={rows}
            rowKey={(queue) => queue.queue}
            to={(queue) => `/queues/${part(queue.queue)}`}
            expected={4}
            empty={
              <EmptyState title={t.emptyTitle} command="rota run enqueue hello --queue default">
                {t.emptyAbout}
              </EmptyState>
            }
          />
        </Card>
      )}
    </>
  );
}

function Name({ queue }: { queue: Queue }) {
  const t = useWords(queuesWords);
  const limit = useWords(limitWords);
  return (
    <span className="queues-name">
      <Link to={`/queues/${part(queue.queue)}`} className="clip" title={queue.queue}>
        {queue.queue}
      </Link>
      {queue.paused && (
        <span className="quiet clip">
          {t.pausedBy(queue.paused.paused_by ?? t.somebody)}
          {queue.paused.reason && `: ${queue.paused.reason}`}
        </span>
      )}
      {queue.live_limit && (
        <span className="quiet clip">{limit.limited(allowed(queue.live_limit, limit.atOnce), queue.live_limit.by ?? limit.somebody)}</span>
      )}
    </span>
  );
}
