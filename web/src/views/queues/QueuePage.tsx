/** Page of one queue: its runs, its workers, and why it is stopped. */
import { part, type Page } from "../../api/client";
import { useGet, useMay } from "../../api/hooks";
import type { Queue, Worker } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link, withSearch } from "../../router";
import { Card, Command, DataTable, PageHeader, ProblemNotice, Tile, Time, type Column } from "../../ui";
import { Slots, WorkerBadge } from "../workers/cells";
import { useQueues, useServing } from "./hooks";
import { LimitNotice } from "./LimitNotice";
import { runsOf } from "./links";
import { PauseButton } from "./PauseButton";
import { Oldest, QueueBadge } from "./QueueBadge";
import { queuesWords, viewName } from "./words";
import "../workers/workers.css";
import "./queues.css";

export function QueuePage({ params }: { params: Record<string, string> }) {
  const name = params.name!;
  const t = useWords(queuesWords);
  const may = useMay("operator");
  const queues = useQueues();
  const serving = useServing()?.(name);
  const using = useGet<Page<{ name: string }>>(null, "/jobs", { queue: name, limit: 500 }).data?.items;
  const found = queues.data?.items.find((queue) => queue.queue === name);
  const queue: Queue | undefined = found ?? (queues.data && { queue: name, queued: 0, scheduled: 0, running: 0, paused: null, oldest_at: null, live_limit: null });
  return (
    <>
      <PageHeader
        title={name}
        heading={
          <span className="row">
            {name} {queue && serving && <QueueBadge queue={queue} served={serving.length > 0} />}
          </span>
        }
        back={{ to: "/queues", name: useWords(viewName).name }}
        about={queue && !found ? t.notFound : undefined}
        actions={
          <>
            <Link className="button" to={withSearch("/audit", { kind: "queue", subject: name })}>{t.history}</Link>
            <Link className="button" to={runsOf(name)}>{t.toRuns}</Link>
            {may && queue && <PauseButton queue={queue} />}
          </>
        }
      />
      {queues.error && <ProblemNotice problem={queues.error} onRetry={() => void queues.refetch()} />}
      {queue?.paused && <Paused queue={queue} />}
      {queue?.live_limit && <LimitNotice limit={queue.live_limit} />}
      {serving && !serving.length && (
        <div className="notice tone-warn">
          <strong>{t.unservedTitle}</strong>
          <span>{t.unservedAbout}</span>
          <Command text={`rota worker MODULE:APP --queues ${shellWord(name)}`} />
        </div>
      )}
      <div className="tiles">
        <Tile name={t.queued} value={queue?.queued} loading={!queue} to={runsOf(name, "queued")} />
        <Tile name={t.scheduled} value={queue?.scheduled} loading={!queue} to={runsOf(name, "scheduled")} />
        <Tile name={t.running} value={queue?.running} loading={!queue} to={runsOf(name, "running")} />
        <Tile name={t.oldest} value={queue && <Oldest queue={queue} />} loading={!queue} note={queue && !queue.oldest_at ? t.nobodyWaits : undefined} />
      </div>
      {serving && serving.length > 0 && <Serving name={name} workers={serving} />}
      <Card title={t.usedBy}>
        {using?.length ? (
          <span className="chips">
            {using.map((job) => (
              <Link key={job.name} className="tag" to={`/jobs/${part(job.name)}`}>
                <span className="clip">{job.name}</span>
              </Link>
            ))}
          </span>
        ) : (
          <span className="quiet">{using && t.noJobs}</span>
        )}
      </Card>
    </>
  );
}

function Paused({ queue }: { queue: Queue }) {
  const t = useWords(queuesWords);
  const { paused_by, paused_at, reason } = queue.paused!;
  return (
    <div className="notice tone-warn">
      <strong>{t.pausedBy(paused_by ?? t.somebody)}</strong>
      <span>{reason || t.noReason}</span>
      <span className="quiet"><Time at={paused_at} show="both" /></span>
    </div>
  );
}

function Serving({ name, workers }: { name: string; workers: Worker[] }) {
  const t = useWords(queuesWords);
  const columns: Column<Worker>[] = [
    { id: "name", name: t.worker, cell: (worker) => <Link to={`/workers/${part(worker.id)}`}>{worker.name}</Link> },
    { id: "state", name: t.state, cell: (worker) => <WorkerBadge state={worker.state} /> },
    { id: "slots", name: t.slots, cell: (worker) => <Slots worker={worker} /> },
    { id: "weight", name: t.weight, cell: (worker) => worker.queues[name], number: true },
  ];
  return (
    <Card title={t.servedBy} bare>
      <DataTable label={t.servedBy} columns={columns} rows={workers} rowKey={(worker) => worker.id} to={(worker) => `/workers/${part(worker.id)}`} />
    </Card>
  );
}

/** Quote a name for the shell. */
const shellWord = (text: string) => (/^[\w.@%+:,/-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
