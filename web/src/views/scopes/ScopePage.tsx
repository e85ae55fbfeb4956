/** Page of one scope, such as a tenant: its runs, its errors, what waits and why, its quota. */
import { useState } from "react";
import type { Page } from "../../api/client";
import { useGet, useMay } from "../../api/hooks";
import type { Counted, ErrorGroup, ErrorGroups, Explanation, QuotaOf, Run, RunState } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link, withSearch } from "../../router";
import { Button, Card, DataTable, EmptyState, Facts, PageHeader, ProblemNotice, Tile, duration, type Column } from "../../ui";
import { useColumns } from "../runs/list/columns";
import { Sentence } from "../runs/detail/Sentence";
import { RunLink } from "../runs/RunLink";
import "../runs/list/runs.css";
import { runsOf } from "./links";
import { PauseButton } from "./PauseButton";
import { Allowed, PausedNotice } from "./quota";
import { QuotaDialog } from "./QuotaDialog";
import { scopesWords, viewName } from "./words";

const DAY = 86_400_000;

export function ScopePage({ params }: { params: Record<string, string> }) {
  const t = useWords(scopesWords);
  const { kind, id } = { kind: params.kind!, id: params.id! };
  const scope = `${kind}/${id}`;
  const may = { pause: useMay("operator"), change: useMay("admin") };
  const [editing, setEditing] = useState(false);
  const quotas = useGet<Page<QuotaOf>>("runs", "/quotas", { limit: 500 }, { rest: 1_000 });
  const own = quotas.data?.items.find((quota) => quota.kind === kind && quota.id === id) ?? null;
  const general = quotas.data?.items.find((quota) => quota.kind === kind && quota.id === null) ?? null;
  const shown = own ?? general;
  return (
    <>
      <PageHeader
        title={scope}
        back={{ to: "/scopes", name: useWords(viewName).name }}
        actions={
          <>
            <Link className="button" to={withSearch("/audit", { kind: "quota", subject: scope })}>{t.history}</Link>
            <Link className="button" to={runsOf(kind, id)}>{t.toRuns}</Link>
            {may.change && <Button onClick={() => setEditing(true)}>{t.changeQuota}</Button>}
            {may.pause && quotas.data && <PauseButton kind={kind} id={id} paused={!!own?.paused} />}
          </>
        }
      />
      {quotas.error && <ProblemNotice problem={quotas.error} onRetry={() => void quotas.refetch()} />}
      {shown?.paused && <PausedNotice quota={shown} />}
      <div className="tiles">
        <Count kind={kind} id={id} name={t.running} states={["running", "cancelling"]} />
        <Count kind={kind} id={id} name={t.queued} states={["queued"]} />
        <Count kind={kind} id={id} name={t.succeeded} states={["succeeded"]} lastDay />
        <Count kind={kind} id={id} name={t.failed} states={["failed", "timed_out", "expired"]} lastDay bad />
        <Cost kind={kind} id={id} />
      </div>
      <Card title={t.quota}>
        <Facts
          items={[
            [t.ownQuota, own ? <Allowed quota={own} /> : <span className="quiet">{t.none}</span>],
            [t.kindQuota(kind), general ? <Allowed quota={general} /> : <span className="quiet">{t.none}</span>],
          ]}
        />
      </Card>
      <Waiting scope={scope} />
      <Errors scope={scope} />
      <Newest scope={scope} />
      {editing && <QuotaDialog kind={kind} id={id} quota={own} onClose={() => setEditing(false)} />}
    </>
  );
}

interface CountProps {
  kind: string;
  id: string;
  name: string;
  states: RunState[];
  lastDay?: boolean;
  bad?: boolean;
}

/** A day until now, to the minute, so that the query key stays the same. */
const useYesterday = () => useState(() => new Date(Math.floor(Date.now() / 60_000) * 60_000 - DAY).toISOString())[0];

/** What it cost in run time. */
function Cost({ kind, id }: { kind: string; id: string }) {
  const t = useWords(scopesWords);
  const since = useYesterday();
  const found = useGet<Counted>("runs", "/runs:count", { scope: `${kind}/${id}`, created_after: since, run_time: true }, { rest: 2_000 }).data;
  const took = found?.run_time_ms;
  return <Tile name={t.runTime} value={took != null && `${took ? duration(took) : "0"}${found!.exact ? "" : "+"}`} note={t.lastDay} loading={!found} to={runsOf(kind, id, ["since", "24h"])} />;
}

function Count({ kind, id, name, states, lastDay, bad }: CountProps) {
  const t = useWords(scopesWords);
  const since = useYesterday();
  const found = useGet<Counted>("runs", "/runs:count", { scope: `${kind}/${id}`, state: states, ...(lastDay && { created_after: since }) }, { rest: 2_000 }).data;
  const tokens: [string, string][] = [...states.map((state): [string, string] => ["state", state]), ...(lastDay ? ([["since", "24h"]] as [string, string][]) : [])];
  const text = found && `${found.count.toLocaleString()}${found.exact ? "" : "+"}`;
  return <Tile name={name} value={text} note={lastDay ? t.lastDay : undefined} tone={bad && found?.count ? "bad" : undefined} loading={!found} to={runsOf(kind, id, ...tokens)} />;
}

/** The runs that have waited longest, and why the first of them does. */
function Waiting({ scope }: { scope: string }) {
  const t = useWords(scopesWords);
  const waiting = useGet<Page<Run>>("runs", "/runs", { scope, state: ["queued", "scheduled"], limit: 100 }, { rest: 2_000 }).data?.items;
  const first = waiting?.filter((run) => run.state === "queued").at(-1) ?? waiting?.at(-1);
  const why = useGet<Explanation>(first ? `run:${first.id}` : null, `/runs/${first?.id}/explain`, {}, { enabled: !!first }).data;
  if (!first) return null;
  return (
    <Card title={t.waits}>
      <p>
        <RunLink id={first.id}>{first.job}</RunLink> {why?.words.map((words) => (
          <span key={words}>
            <Sentence text={words} />{" "}
          </span>
        ))}
      </p>
    </Card>
  );
}

function Errors({ scope }: { scope: string }) {
  const t = useWords(scopesWords);
  const found = useGet<ErrorGroups>("runs", "/error-groups", { scope, limit: 5 }, { rest: 2_000 });
  const columns: Column<ErrorGroup>[] = [
    { id: "error", name: t.error, cell: (group) => <span className="clip">{[group.type, group.message].filter(Boolean).join(": ")}</span>, clip: true },
    { id: "job", name: t.job, cell: (group) => group.job, width: "20%", priority: "low" },
    { id: "count", name: t.count, cell: (group) => group.count.toLocaleString(), number: true, width: "6rem" },
  ];
  return (
    <Card bare title={t.errors}>
      {found.error && <ProblemNotice problem={found.error} />}
      <DataTable label={t.errors} columns={columns} rows={found.data?.items} rowKey={(group) => `${group.job} ${group.fingerprint}`} expected={2} empty={<EmptyState title={t.noErrors} />} />
    </Card>
  );
}

function Newest({ scope }: { scope: string }) {
  const t = useWords(scopesWords);
  const columns = useColumns();
  const runs = useGet<Page<Run>>("runs", "/runs", { scope, limit: 10 }, { rest: 1_000 });
  return (
    <Card bare title={t.newest}>
      {runs.error && <ProblemNotice problem={runs.error} />}
      <DataTable label={t.newest} columns={columns} rows={runs.data?.items} rowKey={(run) => run.id} to={(run) => `/runs/${run.id}`} expected={5} empty={<EmptyState title={t.noRuns}>{t.noRunsAbout}</EmptyState>} />
    </Card>
  );
}
