/** System page: standing of the database, versions and settings of the fleet, and what is wrong with them. */
import { useState } from "react";
import { part, type Page } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { Attention, Check, DatabaseStanding, Worker } from "../../api/schema";
import { useWords } from "../../i18n";
import { useSaid } from "../../i18n/said";
import { Link } from "../../router";
import { Badge, Button, Card, Command, DataTable, duration, EmptyState, PageHeader, ProblemNotice, Time, type Column } from "../../ui";
import { kindWords, nameOf } from "../overview/attentionWords";
import { WorkerBadge } from "../workers/cells";
import { systemWords, viewName } from "./words";

const OF_THE_SYSTEM = ["database_copied", "epoch_new", "worker_gone", "signals_untold", "versions_apart", "polling", "clock"];
/** Milliseconds that a request may take: a smaller offset of the clocks says nothing. */
const CERTAIN = 2_000;

export function SystemPage() {
  const t = useWords(systemWords);
  const { name } = useWords(viewName);
  return (
    <>
      <PageHeader title={name} about={t.about} />
      <Health />
      <Database />
      <Fleet />
      <Card title={t.backups}>
        <p>{t.backupsAbout}</p>
      </Card>
    </>
  );
}

function Health() {
  const t = useWords(systemWords);
  const kinds = useWords(kindWords);
  const said = useSaid();
  const found = useGet<Page<Attention>>("workers", "/attention", { limit: 500 }, { rest: 2_000, every: 30_000 });
  const items = found.data?.items.filter((item) => OF_THE_SYSTEM.includes(item.kind));
  return (
    <Card title={t.health}>
      {found.error && <ProblemNotice problem={found.error} onRetry={() => void found.refetch()} />}
      {items &&
        (items.length ? (
          <ul className="stack" aria-label={t.health}>
            {items.map((item) => (
              <li key={`${item.kind} ${item.subject}`} data-kind={item.kind}>
                <Badge tone={item.severity === "problem" ? "bad" : "warn"} shape={item.severity === "problem" ? "expired" : "waiting"}>{nameOf(kinds, item.kind)}</Badge>{" "}
                <span className="hostile">{said(item.text)}</span>
                {item.hint && <p className="quiet hostile">{said(item.hint)}</p>}
              </li>
            ))}
          </ul>
        ) : (
          <p>
            <Badge tone="good" shape="succeeded">{t.well}</Badge> {t.wellAbout}
          </p>
        ))}
      <p className="quiet">{t.thorough}</p>
      <Command text="rota doctor" />
      <Checks />
    </Card>
  );
}

/** What `rota doctor` says, asked of the server. Only on demand: it reads the ledgers. */
function Checks() {
  const t = useWords(systemWords);
  const said = useSaid();
  const [asked, setAsked] = useState(false);
  const found = useGet<Page<Check>>(null, "/database/checks", {}, { enabled: asked });
  const columns: Column<Check>[] = [
    { id: "name", name: t.check, cell: (check) => <span className="mono">{check.name}</span> },
    {
      id: "level",
      name: t.state,
      cell: ({ level }) => (
        <Badge tone={level === "ok" ? "good" : level === "warning" ? "warn" : "bad"} shape={level === "ok" ? "succeeded" : level === "warning" ? "waiting" : "expired"}>{level === "ok" ? t.ok : level === "warning" ? t.warning : t.problem}</Badge>
      ),
    },
    { id: "words", name: t.found, cell: ({ words, hint }) => <><span className="hostile">{said(words)}</span>{hint && <p className="quiet hostile">{said(hint)}</p>}</> },
  ];
  return (
    <>
      <p>
        <Button icon="retry" busy={found.isFetching} onClick={() => (asked ? void found.refetch() : setAsked(true))}>{t.checkNow}</Button>
      </p>
      {found.error && <ProblemNotice problem={found.error} onRetry={() => void found.refetch()} />}
      {found.data && <DataTable label={t.checks} columns={columns} rows={found.data.items} rowKey={({ name, words }) => `${name} ${words}`} expected={20} empty={null} />}
    </>
  );
}

function Database() {
  const t = useWords(systemWords);
  const standing = useGet<DatabaseStanding>(null, "/database", {}, { every: 30_000 });
  const time = useGet<{ now: string }>(null, "/time", {}, { every: 60_000 });
  const offset = time.data && Date.parse(time.data.now) - time.dataUpdatedAt;
  const data = standing.data;
  return (
    <Card title={t.database}>
      {standing.error && <ProblemNotice problem={standing.error} onRetry={() => void standing.refetch()} />}
      {data && (
        <dl className="facts">
          <dt>{t.standing}</dt>
          <dd>
            {data.held ? <Badge tone="bad" shape="failed">{t.copy}</Badge> : t.original}
            {data.accepted_by && <span className="quiet"> {t.accepted(data.accepted_by)}</span>}
          </dd>
          <dt>{t.epoch}</dt>
          <dd>
            {data.epoch} {data.since && <span className="quiet">{t.since} <Time at={data.since} /></span>}
          </dd>
          <dt>{t.lost}</dt>
          <dd>{data.lost_runs.toLocaleString()}</dd>
          <dt>{t.clock}</dt>
          <dd>{offset === undefined ? "–" : Math.abs(offset) < CERTAIN ? t.same : offset > 0 ? t.ahead(duration(offset)) : t.behind(duration(-offset))}</dd>
        </dl>
      )}
    </Card>
  );
}

function Fleet() {
  const t = useWords(systemWords);
  const workers = useGet<Page<Worker>>("workers", "/workers", { limit: 500 }, { rest: 2_000, every: 15_000 });
  const rows = workers.data?.items;
  const columns: Column<Worker>[] = [
    { id: "worker", name: t.worker, clip: true, cell: (worker) => <Link to={`/workers/${part(worker.id)}`} className="clip" title={worker.id}>{worker.name}</Link>, sortBy: (worker) => worker.name },
    { id: "state", name: t.state, cell: (worker) => <WorkerBadge state={worker.state} />, sortBy: (worker) => worker.state },
    { id: "version", name: t.version, cell: (worker) => <span className="clip">{worker.version}</span>, sortBy: (worker) => worker.version },
    { id: "app", name: t.app, cell: (worker) => <span className="hostile">{worker.app_version || "–"}</span>, priority: "low", sortBy: (worker) => worker.app_version },
    { id: "heartbeat", name: t.heartbeat, cell: (worker) => worker.heartbeat ?? t.standard, priority: "low" },
    { id: "poll", name: t.poll, cell: (worker) => worker.poll ?? t.standard, priority: "low" },
    { id: "slots", name: t.slots, cell: (worker) => worker.slots, number: true, priority: "low", sortBy: (worker) => worker.slots },
    { id: "labels", name: t.labels, cell: (worker) => <span className="hostile">{worker.labels.join(", ") || "–"}</span>, priority: "lowest" },
    { id: "started", name: t.started, cell: (worker) => <Time at={worker.started_at} />, priority: "low", sortBy: (worker) => worker.started_at },
  ];
  return (
    <Card bare title={<>{t.fleet} {rows && <span className="quiet">{versionsOf(rows, t.processes)}</span>}</>}>
      {workers.error && !rows ? (
        <ProblemNotice problem={workers.error} onRetry={() => void workers.refetch()} />
      ) : (
        <DataTable label={t.fleet} columns={columns} rows={rows} rowKey={(worker) => worker.id} expected={3} empty={<EmptyState title={t.none} command={["rota server", "rota worker MODULE:APP"]}>{t.noneAbout}</EmptyState>} />
      )}
    </Card>
  );
}

/** Format `1.4.0 (3 processes), 1.3.9 (1 process)` of those that are alive. */
function versionsOf(workers: Worker[], processes: (count: number) => string): string {
  const counts = new Map<string, number>();
  for (const worker of workers) if (worker.state !== "gone") counts.set(worker.version, (counts.get(worker.version) ?? 0) + 1);
  return [...counts].sort().map(([version, count]) => `${version} (${processes(count)})`).join(", ");
}
