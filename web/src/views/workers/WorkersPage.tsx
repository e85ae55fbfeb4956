/** List of workers: host, queues, slots and pending requests. */
import { part, type Page } from "../../api/client";
import { useGet, useMay } from "../../api/hooks";
import type { Worker } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link } from "../../router";
import { Card, DataTable, EmptyState, PageHeader, ProblemNotice, Time, type Column } from "../../ui";
import { WorkerMenu } from "./WorkerActions";
import { QueueNames, Slots, useAsked, WorkerBadge } from "./cells";
import { viewName, workersWords } from "./words";
import "./workers.css";

export function WorkersPage() {
  const t = useWords(workersWords);
  const name = useWords(viewName).name;
  const may = useMay("operator");
  const workers = useGet<Page<Worker>>("workers", "/workers", {}, { every: 10_000, rest: 300 });
  const rows = workers.data?.items;
  const columns: Column<Worker>[] = [
    { id: "name", name: t.worker, cell: (worker) => <Name worker={worker} />, sortBy: (worker) => worker.name },
    { id: "state", name: t.state, cell: (worker) => <State worker={worker} />, sortBy: (worker) => worker.state },
    { id: "slots", name: t.slots, cell: (worker) => <Slots worker={worker} />, sortBy: (worker) => worker.held },
    { id: "queues", name: t.queues, cell: (worker) => <QueueNames queues={worker.queues} />, priority: "low" },
    { id: "version", name: t.version, cell: (worker) => <Version worker={worker} />, priority: "lowest", sortBy: (worker) => worker.version },
    { id: "seen", name: t.seen, cell: (worker) => <Time at={worker.seen_at} />, priority: "low", sortBy: (worker) => worker.seen_at },
    ...(may ? [{ id: "actions", name: t.actions, cell: (worker: Worker) => <WorkerMenu worker={worker} />, number: true, width: "4rem", priority: "low" as const }] : []),
  ];
  return (
    <>
      <PageHeader title={name} about={rows?.length ? <Sum workers={rows} /> : undefined} />
      {workers.error && <ProblemNotice problem={workers.error} onRetry={() => void workers.refetch()} />}
      {!(workers.error && !rows) && (
        <Card bare>
          <DataTable
            label={name}
            columns={columns}
            rows={rows}
            rowKey={(worker) => worker.id}
            to={(worker) => `/workers/${part(worker.id)}`}
            expected={4}
            empty={
              <EmptyState title={t.emptyTitle} command={["rota dev", "rota worker MODULE:APP"]}>
                {t.emptyAbout}
              </EmptyState>
            }
          />
        </Card>
      )}
    </>
  );
}

function Sum({ workers }: { workers: Worker[] }) {
  const t = useWords(workersWords);
  const alive = workers.filter((worker) => worker.state !== "gone");
  const gone = workers.length - alive.length;
  const total = (of: (worker: Worker) => number) => alive.reduce((sum, worker) => sum + of(worker), 0);
  const words = [t.alive(alive.length), gone > 0 && t.goneCount(gone), t.taken(total((worker) => worker.held), total((worker) => worker.slots))];
  return <>{words.filter(Boolean).join(" · ")}</>;
}

function Name({ worker }: { worker: Worker }) {
  return (
    <span className="workers-name">
      <Link to={`/workers/${part(worker.id)}`} className="clip" title={worker.id}>
        {worker.name}
      </Link>
      <span className="quiet clip">
        {worker.host} · {worker.pid}
      </span>
    </span>
  );
}

function State({ worker }: { worker: Worker }) {
  const asked = useAsked(worker);
  return (
    <span title={asked ?? undefined}>
      <WorkerBadge state={worker.state} />
      {asked && <span className="quiet"> …</span>}
    </span>
  );
}

function Version({ worker }: { worker: Worker }) {
  return (
    <span className="workers-name">
      <span>{worker.version}</span>
      {worker.app_version && <span className="quiet clip">{worker.app_version}</span>}
    </span>
  );
}
