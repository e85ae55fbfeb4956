/** Page of one job: state, statistics and definition. */
import { part, type Page } from "../../api/client";
import { useGet, useMay } from "../../api/hooks";
import { writeJson } from "../../api/json";
import type { Problem } from "../../api/problem";
import type { JobStats, Run } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link, withSearch } from "../../router";
import { Card, DataTable, Duration, Facts, JsonTree, PageHeader, ProblemNotice, StateBadge, Tile, Time, type Column, type JsonSchema, type Shown } from "../../ui";
import { LimitNotice } from "../queues/LimitNotice";
import { JobActions } from "./JobActions";
import { JobBadge } from "./JobBadge";
import { runsOf } from "./links";
import { percent, rateTone, span, useStats } from "./stats";
import type { Job } from "./types";
import { jobsWords, viewName } from "./words";
import "./jobs.css";

export function JobPage({ params }: { params: Record<string, string> }) {
  const name = params.name!;
  const t = useWords(jobsWords);
  const back = { to: "/jobs", name: useWords(viewName).name };
  const job = useGet<Job>("runs", `/jobs/${part(name)}`, {}, { rest: 300, every: 30_000 });
  if (job.data) return <Known job={job.data} stale={job.error} />;
  return (
    <>
      <PageHeader title={job.error?.status === 404 ? t.notFound : name} back={back} about={<code>{name}</code>} />
      {job.error ? <ProblemNotice problem={job.error} onRetry={() => void job.refetch()} /> : <Card><span className="skeleton" style={{ width: "40%" }} /></Card>}
    </>
  );
}

function Known({ job, stale }: { job: Job; stale: Problem | null }) {
  const t = useWords(jobsWords);
  const may = useMay("operator");
  const stats = useStats(job.name);
  return (
    <>
      <PageHeader
        title={job.name}
        heading={<span className="row">{job.name} <JobBadge state={job.status.state} /></span>}
        back={{ to: "/jobs", name: useWords(viewName).name }}
        about={job.description || undefined}
        actions={may && <JobActions job={job} />}
      />
      {stale && <ProblemNotice problem={stale} />}
      {job.status.paused_at && (
        <div className="notice tone-warn">
          <strong>{t.pausedBy(job.status.paused_by ?? t.somebody)}</strong>
          <span>{job.status.pause_reason || t.noReason}</span>
          <span className="quiet"><Time at={job.status.paused_at} show="both" /></span>
        </div>
      )}
      {job.status.live_limit && <LimitNotice limit={job.status.live_limit} />}
      {!job.enabled && <p className="notice tone-warn">{t.disabled}</p>}
      <Tiles job={job} stats={stats.data} />
      <div className="jobs-columns">
        <div className="stack">
          <Recent job={job} />
          <Schedules job={job} />
          <Card title={t.schema}>
            <Payload schema={job.payload_schema} />
          </Card>
        </div>
        <div className="stack">
          <Outcomes job={job} stats={stats.data} />
          <Declared job={job} />
        </div>
      </div>
    </>
  );
}

function Tiles({ job, stats }: { job: Job; stats: JobStats | undefined }) {
  const t = useWords(jobsWords);
  return (
    <div className="tiles">
      <Tile name={t.total} value={stats?.total.toLocaleString("en")} loading={!stats} to={runsOf(job.name)} note={t.liveAbout(job.status.running, job.status.waiting)} />
      <Tile name={t.rate} value={percent(stats?.success_rate)} tone={rateTone(stats?.success_rate)} loading={!stats} />
      <Tile name={t.average} value={span(stats?.average_duration_ms)} loading={!stats} note={stats && `p95 ${span(stats.p95_duration_ms)}`} />
      <Tile name={t.last} value={<Time at={stats?.last_execution_at} />} loading={!stats} />
      <Tile name={t.next} value={<Time at={job.status.next_at} />} />
    </div>
  );
}

const ENDS = ["succeeded", "failed", "timed_out", "expired", "cancelled", "skipped"] as const;

function Outcomes({ job, stats }: { job: Job; stats: JobStats | undefined }) {
  const t = useWords(jobsWords);
  return (
    <Card title={t.outcomes}>
      <ul className="jobs-ends">
        {ENDS.map((state) => (
          <li key={state}>
            <Link to={runsOf(job.name, state)}><StateBadge state={state as Shown} /></Link>
            <span className={stats?.[state] ? undefined : "quiet"}>{stats ? stats[state].toLocaleString("en") : "–"}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Recent({ job }: { job: Job }) {
  const t = useWords(jobsWords);
  const runs = useGet<Page<Run>>("runs", `/jobs/${part(job.name)}/runs`, { limit: 8 }, { rest: 300 });
  const columns: Column<Run>[] = [
    { id: "run", name: t.run, cell: (run) => <Link className="mono" to={`/runs/${run.id}`} title={run.id}>…{run.id.slice(-6)}</Link> },
    { id: "state", name: t.state, cell: (run) => <StateBadge state={run.state} /> },
    { id: "began", name: t.began, cell: (run) => <Time at={run.created_at} />, number: true },
    { id: "took", name: t.took, cell: (run) => (run.started_at ? <Duration from={run.started_at} to={run.finished_at} /> : <span className="quiet">–</span>), number: true },
  ];
  const empty = <p className="jobs-none quiet">{t.noRuns}</p>;
  return (
    <Card title={t.recent} bare actions={<Link className="button small plain" to={runsOf(job.name)}>{t.allRuns}</Link>}>
      <DataTable label={t.recent} columns={columns} rows={runs.data?.items} rowKey={(run) => run.id} to={(run) => `/runs/${run.id}`} expected={3} empty={empty} />
    </Card>
  );
}

interface Scheduled {
  name: string;
  rule: string;
  next_at?: string | null;
  state: string;
}

function Schedules({ job }: { job: Job }) {
  const t = useWords(jobsWords);
  const found = useGet<Page<Scheduled>>("schedules", "/schedules", { job: job.name }, { rest: 2_000 });
  const items = found.data?.items;
  return (
    <Card title={t.schedules}>
      {items?.length ? (
        <ul className="jobs-schedules">
          {items.map((schedule) => (
            <li key={schedule.name}>
              <Link className="clip" to={`/schedules/${part(schedule.name)}`}>{schedule.name}</Link>
              <span className="quiet clip">{schedule.rule}</span>
            </li>
          ))}
        </ul>
      ) : (
        <span className="quiet">{items ? t.noSchedules : "…"}</span>
      )}
    </Card>
  );
}

/** Table of payload fields. The full schema is shown below, because a table cannot show all of it. */
function Payload({ schema }: { schema: JsonSchema | null }) {
  const t = useWords(jobsWords);
  const fields = Object.entries(schema?.properties ?? {});
  if (!schema || !Object.keys(schema).length) return <span className="quiet">{t.noSchema}</span>;
  return (
    <div className="stack">
      {fields.length > 0 ? (
        <table className="table jobs-fields" aria-label={t.schema}>
          <thead>
            <tr>
              <th scope="col">{t.field}</th>
              <th scope="col">{t.type}</th>
              <th scope="col">{t.required}</th>
            </tr>
          </thead>
          <tbody>
            {fields.map(([name, field]) => (
              <tr key={name}>
                <th scope="row" className="hostile"><code>{name}</code></th>
                <td className="hostile">{typeName(field)}</td>
                <td>{schema.required?.includes(name) ? t.yes : <span className="quiet">{"default" in field ? writeJson(field.default) : t.no}</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <span className="quiet">{t.noSchema}</span>
      )}
      <details>
        <summary>{t.jsonSchema}</summary>
        <JsonTree value={schema} label={t.jsonSchema} />
      </details>
    </div>
  );
}

function typeName(field: JsonSchema): string {
  if (field.enum) return field.enum.map((value) => writeJson(value)).join(" | ");
  if (field.anyOf) return field.anyOf.map(typeName).join(" | ");
  const items = field.items as JsonSchema | undefined;
  const type = [field.type].flat().filter(Boolean).join(" | ") || "…";
  return type === "array" && items?.type ? `array of ${typeName(items)}` : type;
}

const SHOWN_ABOVE = ["name", "status", "payload_schema", "description"];

function Declared({ job }: { job: Job }) {
  const t = useWords(jobsWords) as unknown as Record<string, string> & ReturnType<typeof useWords<typeof jobsWords.en>>;
  const all = Object.fromEntries(Object.entries(job).filter(([name]) => !SHOWN_ABOVE.includes(name)));
  const { keep, keep_for } = job.retention;
  return (
    <Card title={t.declared}>
      <div className="stack">
        <Facts
          items={[
            [t.kind, t[job.kind] ?? job.kind],
            [t.version, job.version],
            [t.queue, <Link to={`/queues/${part(job.queue)}`}>{job.queue}</Link>],
            job.priority !== 0 && [t.priority, job.priority],
            [t.attempts, job.retry.max_attempts],
            [t.timeout, job.timeout ?? t.never],
            job.kind === "python" && [t.isolation, t[job.isolation] ?? job.isolation],
            [t.onLost, <code>{job.on_lost}</code>],
            [t.grace, job.cancel.supported ? job.cancel.grace : t.notCancellable],
            (keep !== null || keep_for !== null) && [t.retention, t.keeps(String(keep ?? "∞"), keep_for ?? "∞")],
            job.steps.length > 0 && [t.steps, job.steps.map((step) => step.id).join(" → ")],
            job.tags.length > 0 && [t.tags, <span className="chips">{job.tags.map((tag) => <span key={tag} className="tag"><span className="clip">{tag}</span></span>)}</span>],
            [t.history, <Link to={withSearch("/audit", { kind: "job", subject: job.name })}>{t.audit}</Link>],
          ]}
        />
        <details>
          <summary>{t.everything}</summary>
          <JsonTree value={all} label={t.everything} />
        </details>
      </div>
    </Card>
  );
}
