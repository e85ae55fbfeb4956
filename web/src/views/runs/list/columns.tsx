/** Columns of the list of runs, and which of them somebody has chosen. */
import { useState } from "react";
import { writeJson } from "../../../api/json";
import type { Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { Link } from "../../../router";
import { Duration, ProgressBar, StateBadge, Time, type Column } from "../../../ui";
import { ending } from "../RunLink";
import { scopeText } from "../search";
import { firstLine } from "../text";
import { runsWords } from "../words";

const KEY = "rota.run-columns";
const USUAL = ["run", "state", "scope", "queue", "created", "took", "attempt", "details"];

/** Chosen columns, kept in the browser. */
export function useShownColumns(): [string[], (shown: string[]) => void] {
  const [shown, setShown] = useState<string[]>(() => {
    try {
      const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "null");
      return Array.isArray(kept) ? ["run", ...kept.filter((id): id is string => typeof id === "string" && id !== "run")] : USUAL;
    } catch {
      return USUAL;
    }
  });
  const keep = (next: string[]) => {
    setShown(next);
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
    } catch {
      // The list works without storage.
    }
  };
  return [shown, keep];
}

const plain = (value: string | number | null) => (value === null ? <span className="quiet">–</span> : value);

export function useColumns(): Column<Run>[] {
  const t = useWords(runsWords);
  return [
    { id: "run", name: t.run, cell: (run) => <Name run={run} />, clip: true, width: "13rem" },
    { id: "state", name: t.state, cell: (run) => <StateBadge state={run.state} />, width: "7.5rem" },
    { id: "scope", name: t.scope, cell: (run) => <Scoped run={run} />, clip: true, width: "8rem", priority: "lowest" },
    { id: "queue", name: t.queue, cell: (run) => run.queue, clip: true, width: "6rem", priority: "lowest" },
    { id: "schedule", name: t.schedule, cell: (run) => plain(run.schedule), clip: true, width: "9rem", priority: "lowest" },
    { id: "worker", name: t.worker, cell: (run) => plain(run.worker_id), clip: true, width: "9rem", priority: "lowest" },
    { id: "key", name: t.key, cell: (run) => plain(run.key), clip: true, width: "7rem", priority: "lowest" },
    { id: "priority", name: t.priority, cell: (run) => run.priority, number: true, width: "5rem", priority: "lowest" },
    { id: "created", name: t.created, cell: (run) => <Time at={run.created_at} />, width: "6rem" },
    { id: "took", name: t.took, cell: (run) => <Took run={run} />, number: true, width: "7rem", priority: "low" },
    { id: "attempt", name: t.attempt, cell: (run) => (run.attempt ? `${run.attempt}/${run.max_attempts}` : "–"), number: true, width: "5rem", priority: "lowest" },
    { id: "details", name: t.details, cell: (run) => <Details run={run} />, clip: true, priority: "low" },
  ];
}

function Scoped({ run }: { run: Run }) {
  const everybody = run.scope.kind === "global" && run.scope.id === "global";
  return everybody ? <span className="quiet">–</span> : <span title={scopeText(run.scope)}>{scopeText(run.scope)}</span>;
}

function Name({ run }: { run: Run }) {
  return (
    <span className="runs-name">
      <Link to={`/runs/${run.id}`} className="clip">
        {run.job}
      </Link>
      <span className="mono quiet" title={run.id}>
        {ending(run.id)}
      </span>
    </span>
  );
}

function Took({ run }: { run: Run }) {
  const t = useWords(runsWords);
  if (run.state === "scheduled") {
    return (
      <span className="quiet">
        {t.due} <Time at={run.run_at} />
      </span>
    );
  }
  if (run.state === "queued" || !run.started_at) return <span className="quiet">–</span>;
  return <Duration from={run.started_at} to={run.finished_at} />;
}

/** The most important detail in one line: error, progress, reason or payload. */
function Details({ run }: { run: Run }) {
  const t = useWords(runsWords);
  const said = useSaid();
  if (run.error && run.state !== "succeeded") {
    return <span className="runs-error">{`${run.error.type}: ${firstLine(run.error.message)}`}</span>;
  }
  if (run.state === "running" && run.progress) {
    return (
      <span className="runs-progress">
        {run.progress.percentage !== null && <ProgressBar percentage={run.progress.percentage} label={t.progress} />}
        <span className="quiet clip">{run.progress.summary}</span>
      </span>
    );
  }
  if (run.reason) return <span className="quiet">{run.state === "skipped" ? said(run.reason) : run.reason}</span>;
  const place = [run.schedule, ...run.tags].filter(Boolean).join(" · ");
  const given = run.payload && Object.keys(run.payload).length ? writeJson(run.payload).slice(0, 200) : "";
  return (
    <span className="quiet">
      {place} <code>{given}</code>
    </span>
  );
}
