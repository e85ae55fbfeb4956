/** Page of one worker: facts, current runs and known jobs. */
import { part } from "../../api/client";
import { useGet, useMay } from "../../api/hooks";
import type { Problem } from "../../api/problem";
import type { Worker } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link, withSearch } from "../../router";
import { Card, CopyButton, Duration, Facts, PageHeader, ProblemNotice, Time } from "../../ui";
import { format } from "../runs/search";
import { AttentionHere, useAttention } from "../overview/AttentionHere";
import { WorkerActions } from "./WorkerActions";
import { QueueNames, Slots, useAsked, WorkerBadge } from "./cells";
import { viewName, workersWords } from "./words";
import "./workers.css";

export function WorkerPage({ params }: { params: Record<string, string> }) {
  const id = params.id!;
  const t = useWords(workersWords);
  const back = { to: "/workers", name: useWords(viewName).name };
  const worker = useGet<Worker>("workers", `/workers/${part(id)}`, {}, { every: 10_000, rest: 300 });
  if (worker.data) return <Known worker={worker.data} stale={worker.error} />;
  return (
    <>
      <PageHeader title={worker.error?.status === 404 ? t.notFound : t.worker} back={back} about={<code>{id}</code>} />
      {worker.error ? <ProblemNotice problem={worker.error} onRetry={() => void worker.refetch()} /> : <Card><span className="skeleton" style={{ width: "40%" }} /></Card>}
    </>
  );
}

function Known({ worker, stale }: { worker: Worker; stale: Problem | null }) {
  const t = useWords(workersWords);
  const may = useMay("operator");
  const asked = useAsked(worker);
  const items = useAttention(`/workers/${part(worker.id)}`);
  return (
    <>
      <PageHeader
        title={worker.name}
        heading={
          <span className="row">
            {worker.name} <WorkerBadge state={worker.state} />
          </span>
        }
        back={{ to: "/workers", name: useWords(viewName).name }}
        about={
          <span className="row workers-id">
            <code>{worker.id}</code>
            <CopyButton text={worker.id} />
          </span>
        }
        actions={may && <WorkerActions worker={worker} />}
      />
      {stale && <ProblemNotice problem={stale} />}
      {worker.state === "gone" && <p className="notice tone-bad">{t.goneAbout}</p>}
      <AttentionHere items={items} />
      {asked && <p className="notice tone-warn" role="status">{asked}</p>}
      <div className="workers-columns">
        <div className="stack">
          <Held worker={worker} />
          <Card title={`${t.jobs} (${worker.jobs.length})`}>
            {worker.jobs.length ? (
              <span className="chips">
                {worker.jobs.map((job) => (
                  <Link key={job} className="tag" to={`/jobs/${part(job)}`}>
                    <span className="clip">{job}</span>
                  </Link>
                ))}
              </span>
            ) : (
              <span className="quiet">{t.noJobs}</span>
            )}
          </Card>
        </div>
        <Card>
          <WorkerFacts worker={worker} />
        </Card>
      </div>
    </>
  );
}

function Held({ worker }: { worker: Worker }) {
  const t = useWords(workersWords);
  const more = worker.held - worker.runs.length;
  return (
    <Card
      title={`${t.runs} (${worker.held})`}
      bare={worker.runs.length > 0}
      actions={
        <Link className="button small plain" to={withSearch("/runs", { q: format([{ name: "worker", value: worker.id }]) })}>
          {t.allRuns}
        </Link>
      }
    >
      {worker.runs.length ? (
        <table className="table" aria-label={t.runs}>
          <thead>
            <tr>
              <th scope="col">{t.job}</th>
              <th scope="col">{t.run}</th>
              <th scope="col" className="number">{t.attempt}</th>
              <th scope="col" className="number">{t.since}</th>
            </tr>
          </thead>
          <tbody>
            {worker.runs.map((run) => (
              <tr key={run.id} data-key={run.id}>
                <th scope="row" className="hostile">{run.job}</th>
                <td>
                  <Link className="mono" to={`/runs/${run.id}`} title={run.id}>…{run.id.slice(-6)}</Link>
                </td>
                <td className="number">{run.attempt}</td>
                <td className="number"><Duration from={run.claimed_at} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <span className="quiet">{t.noRuns}</span>
      )}
      {more > 0 && worker.runs.length > 0 && <p className="table-foot">{t.moreRuns(more)}</p>}
    </Card>
  );
}

function WorkerFacts({ worker }: { worker: Worker }) {
  const t = useWords(workersWords);
  return (
    <Facts
      items={[
        [t.slots, <Slots worker={worker} />],
        [t.queues, <QueueNames queues={worker.queues} />],
        [t.seen, <Time at={worker.seen_at} />],
        [t.started, <Time at={worker.started_at} />],
        [t.host, worker.host],
        [t.process, worker.pid],
        [t.version, `rota ${worker.version}`],
        worker.app_version !== "" && [t.appVersion, worker.app_version],
        [
          t.labels,
          worker.labels.length ? (
            <span className="chips">
              {worker.labels.map((label) => (
                <span key={label} className="tag"><span className="clip">{label}</span></span>
              ))}
            </span>
          ) : (
            <span className="quiet">{t.noLabels}</span>
          ),
        ],
        worker.heartbeat !== null && [t.heartbeat, t.every(worker.heartbeat)],
        worker.poll !== null && [t.poll, t.every(worker.poll)],
        [t.history, <Link to={withSearch("/audit", { kind: "worker", subject: worker.id })}>{t.audit}</Link>],
      ]}
    />
  );
}
