/** Columns of the list of runs. */
import { writeJson } from "../../../api/json";
import type { Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { Link } from "../../../router";
import { Duration, ProgressBar, StateBadge, Time, type Column } from "../../../ui";
import { ending } from "../RunLink";
import { firstLine } from "../text";
import { runsWords } from "../words";

export function useColumns(): Column<Run>[] {
  const t = useWords(runsWords);
  return [
    { id: "run", name: t.run, cell: (run) => <Name run={run} />, clip: true, width: "30%" },
    { id: "state", name: t.state, cell: (run) => <StateBadge state={run.state} />, width: "7.5rem" },
    { id: "created", name: t.created, cell: (run) => <Time at={run.created_at} />, width: "6rem" },
    { id: "took", name: t.took, cell: (run) => <Took run={run} />, number: true, width: "7rem", priority: "low" },
    { id: "attempt", name: t.attempt, cell: (run) => (run.attempt ? `${run.attempt}/${run.max_attempts}` : "–"), number: true, width: "5rem", priority: "lowest" },
    { id: "details", name: t.details, cell: (run) => <Details run={run} />, clip: true, priority: "low" },
  ];
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
  if (run.reason) return <span className="quiet">{run.reason}</span>;
  const place = [run.schedule, run.queue !== "default" && run.queue, ...run.tags].filter(Boolean).join(" · ");
  const given = run.payload && Object.keys(run.payload).length ? writeJson(run.payload).slice(0, 200) : "";
  return (
    <span className="quiet">
      {place} <code>{given}</code>
    </span>
  );
}
