/** Table of a run's attempts: worker, time, fence, outcome and metrics. */
import type { Problem } from "../../../api/problem";
import type { Attempt, Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { Card, DataTable, Duration, EmptyState, ProblemNotice, StateBadge, Time, type Column } from "../../../ui";
import { firstLine } from "../text";
import { runsWords } from "../words";

export function Attempts({ run, attempts, problem }: { run: Run; attempts: Attempt[] | undefined; problem: Problem | null }) {
  const t = useWords(runsWords);
  const columns: Column<Attempt>[] = [
    { id: "no", name: t.no, cell: (attempt) => attempt.no, width: "3rem" },
    { id: "outcome", name: t.outcome, cell: (attempt) => <StateBadge state={attempt.outcome ?? (run.state === "cancelling" ? "cancelling" : run.state === "waiting" ? "waiting" : "running")} /> },
    { id: "began", name: t.began, cell: (attempt) => <Time at={attempt.started_at ?? attempt.claimed_at} show="absolute" />, priority: "low" },
    { id: "took", name: t.took, cell: (attempt) => <Duration from={attempt.started_at ?? attempt.claimed_at} to={attempt.ended_at} />, number: true },
    { id: "worker", name: t.worker, cell: (attempt) => <span className="mono">{attempt.worker_id}</span>, priority: "low" },
    { id: "fence", name: t.fence, cell: (attempt) => attempt.fence, number: true, priority: "lowest" },
    { id: "measured", name: t.measured, cell: (attempt) => <Measured attempt={attempt} />, priority: "low" },
    { id: "error", name: t.error, cell: (attempt) => attempt.error && <span className="runs-error">{`${attempt.error.type}: ${firstLine(attempt.error.message)}`}</span>, clip: true, width: "30%" },
  ];
  if (problem && !attempts) return <ProblemNotice problem={problem} />;
  return (
    <Card bare>
      <DataTable label={t.attempts} columns={columns} rows={attempts} rowKey={(attempt) => `${attempt.no}-${attempt.fence}`} expected={2} empty={<EmptyState title={t.noAttempts} />} />
    </Card>
  );
}

function Measured({ attempt }: { attempt: Attempt }) {
  const t = useWords(runsWords);
  const parts = [
    ...Object.entries(attempt.counters).map(([name, count]) => `${name} ${count}`),
    attempt.cpu_time_ms !== null && `${t.cpu} ${attempt.cpu_time_ms} ms`,
    attempt.memory_peak_mb !== null && `${t.memory} ${attempt.memory_peak_mb} MB`,
  ].filter(Boolean);
  return parts.length ? <span>{parts.join(" · ")}</span> : <span className="quiet">–</span>;
}
