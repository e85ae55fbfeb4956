/** Page of one run: state, progress, result and explanation. */
import { useEffect } from "react";
import { useGet, useMay } from "../../../api/hooks";
import type { Page } from "../../../api/client";
import type { Problem } from "../../../api/problem";
import type { Attempt, Event, Explanation, Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { Card, CopyButton, Facts, FINAL, JsonTree, PageHeader, ProblemNotice, ProgressBar, StateBadge, Tabs, Time } from "../../../ui";
import { Link, navigate, withSearch } from "../../../router";
import { AttentionHere, useAttention } from "../../overview/AttentionHere";
import { Attempts } from "./Attempts";
import { ComparisonTab } from "./Comparison";
import { comparisonWords } from "./comparisonWords";
import { RunLink } from "../RunLink";
import { ErrorCard } from "./ErrorCard";
import { Events } from "./Events";
import { GraphTab } from "./Graph";
import { graphWords } from "./graphWords";
import { Log } from "./Log";
import { RelatedRuns } from "./RelatedRuns";
import { RunActions } from "./RunActions";
import { format, scopeText } from "../search";
import { Lifecycle } from "./Lifecycle";
import { Steps } from "./Steps";
import { CancelPhase, ExplanationCard } from "./ExplanationCard";
import { Usual } from "./Usual";
import { runsWords } from "../words";
import "../list/runs.css";
import "./run.css";

const WHOLE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function RunPage({ params }: { params: Record<string, string> }) {
  const id = params.id!;
  const whole = WHOLE.test(id);
  const t = useWords(runsWords);
  const run = useGet<Run>(whole ? `run:${id}` : null, `/runs/${encodeURIComponent(id)}`);
  useEffect(() => {
    // Replace a shortened id by the full one, which links and live updates require.
    if (run.data && run.data.id !== id) navigate(`/runs/${run.data.id}`, { replace: true });
  }, [run.data, id]);
  if (run.data) return <LoadedRun run={run.data} stale={run.error} />;
  return (
    <>
      <PageHeader title={run.error?.status === 404 ? t.notFound : t.run} back={{ to: "/runs", name: t.back }} about={<code>{id}</code>} />
      {run.error ? <ProblemNotice problem={run.error} onRetry={() => void run.refetch()} /> : <Card>{<span className="skeleton" style={{ width: "40%" }} />}</Card>}
    </>
  );
}

function LoadedRun({ run, stale }: { run: Run; stale: Problem | null }) {
  const t = useWords(runsWords);
  const graph = useWords(graphWords);
  const comparison = useWords(comparisonWords);
  const may = useMay("operator");
  const items = useAttention(`/runs/${run.id}`, !FINAL.has(run.state));
  const attempts = useGet<Page<Attempt>>(`run:${run.id}`, `/runs/${run.id}/attempts`);
  const events = useGet<Page<Event>>(`run:${run.id}`, `/runs/${run.id}/events`);
  const explanation = useGet<Explanation>(`run:${run.id}`, `/runs/${run.id}/explain`, {}, { rest: 1_000 });
  return (
    <>
      <PageHeader
        title={`${run.job} …${run.id.slice(-6)}`}
        heading={
          <span className="row">
            {run.job} <StateBadge state={run.state} filled />
          </span>
        }
        back={{ to: "/runs", name: t.back }}
        about={
          <span className="row run-id">
            <code>{run.id}</code>
            <CopyButton text={run.id} />
          </span>
        }
        actions={may && <RunActions run={run} />}
      />
      {stale && <ProblemNotice problem={stale} />}
      <AttentionHere items={items} />
      <Lifecycle run={run} />
      <Usual run={run} />
      {run.state === "cancelling" && <CancelPhase run={run} explanation={explanation.data} events={events.data?.items} />}
      <Tabs
        label={run.job}
        items={[
          { id: "overview", name: t.overview, content: <Overview run={run} explanation={explanation.data} /> },
          { id: "attempts", name: t.attempts, count: attempts.data?.items.length, content: <Attempts run={run} attempts={attempts.data?.items} problem={attempts.error} /> },
          { id: "events", name: t.events, count: events.data?.items.length, content: <Events events={events.data?.items} problem={events.error} /> },
          { id: "graph", name: graph.tab, content: <GraphTab run={run} /> },
          { id: "compare", name: comparison.tab, content: <ComparisonTab run={run} /> },
        ]}
      />
    </>
  );
}

function Overview({ run, explanation }: { run: Run; explanation: Explanation | undefined }) {
  const t = useWords(runsWords);
  const steps = run.progress?.steps ?? [];
  return (
    <div className="run-columns">
      <div className="stack">
        {run.error && run.state !== "succeeded" && <ErrorCard run={run} error={run.error} />}
        {(steps.length > 0 || run.progress) && (
          <Card title={steps.length ? t.steps : t.progress} actions={<span className="quiet">{run.progress?.summary}</span>}>
            <div className="stack">
              {run.progress && !FINAL.has(run.state) && <ProgressBar percentage={run.progress.percentage} label={t.progress} />}
              {steps.length > 0 && <Steps run={run} steps={steps} />}
            </div>
          </Card>
        )}
        <Log run={run} />
        <Card title={t.payload}>{run.payload === null ? <span className="quiet">{t.noPayload}</span> : <JsonTree value={run.payload} label={t.payload} />}</Card>
        {run.state === "succeeded" && (
          <Card title={t.result}>
            <JsonTree value={run.result} label={t.result} />
          </Card>
        )}
      </div>
      <div className="stack">
        <ExplanationCard explanation={explanation} />
        <Card>
          <RunFacts run={run} />
        </Card>
        <RelatedRuns run={run} />
      </div>
    </div>
  );
}

function RunFacts({ run }: { run: Run }) {
  const t = useWords(runsWords);
  const list = (name: string, value: string) => <Link to={withSearch("/runs", { q: format([{ name, value }]) })}>{value}</Link>;
  const global = run.scope.kind === "global" && run.scope.id === "global";
  return (
    <Facts
      items={[
        [t.job, list("job", run.job)],
        [t.version, run.job_version],
        run.schedule !== null && [t.schedule, <Link to={`/schedules/${encodeURIComponent(run.schedule)}`}>{run.schedule}</Link>],
        run.plan_time !== null && [t.planTime, <Time at={run.plan_time} show="absolute" />],
        run.missed_count > 0 && [t.covers, t.coversAbout(run.missed_count)],
        [t.queue, list("queue", run.queue)],
        run.worker_id !== null && [t.worker, list("worker", run.worker_id)],
        [t.attempt, t.oneOf(run.attempt, run.max_attempts)],
        [t.fence, run.fence],
        run.priority !== 0 && [t.priority, run.priority],
        !global && [t.scope, list("scope", scopeText(run.scope))],
        run.key !== null && [t.key, list("key", run.key)],
        run.retry_of !== null && [t.retryOf, <RunLink id={run.retry_of} />],
        run.cancelled_by !== null && [t.cancelledBy, run.cancelled_by],
        run.reason !== null && [t.reason, run.reason],
        run.tags.length > 0 && [
          t.tags,
          <span className="chips">
            {run.tags.map((tag) => (
              <Link key={tag} className="tag clip" to={withSearch("/runs", { q: format([{ name: "tag", value: tag }]) })}>
                {tag}
              </Link>
            ))}
          </span>,
        ],
        Object.keys(run.metadata).length > 0 && [t.metadata, <JsonTree value={run.metadata} label={t.metadata} />],
      ]}
    />
  );
}
