"""Executions: attempts of a job's runs with their numbers, and totals over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from rota.core.jobs.status import JobState
from rota.core.monitoring.statistics import Tally, success_rate
from rota.core.runs.run import Attempt, Run
from rota.core.states import Outcome, RunState
from rota.errors import NotFound
from rota.values.instants import instant, maybe_instant
from rota.values.json import Json

_STATUS = {
    Outcome.SUCCEEDED: "completed", Outcome.FAILED: "failed", Outcome.TIMED_OUT: "failed", Outcome.LOST: "failed",
    Outcome.CANCELLED: "cancelled", Outcome.SNOOZED: "cancelled", Outcome.HANDED_BACK: "cancelled",
}  # fmt: skip

_FRESH = 30_000_000


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a run. All attempts of a run have its number; `retry_attempt` tells them apart."""

    id: str
    """The id of the run and the fence of the attempt: `<run>:<fence>`."""
    run_id: str
    job_id: str
    """Name of the job."""
    execution_number: int | None
    """Number of the run among those that its job ever had, from 1; null for callers who may see one scope only."""
    status: str
    """`running`, `completed`, `failed` or `cancelled`."""
    outcome: Outcome | None
    """How the attempt ended, in rota's words; null while it is running."""
    started_at: datetime
    """When the attempt began, or was claimed if it has not begun."""
    completed_at: datetime | None
    """When the attempt ended; null until then."""
    duration_ms: int | None
    retry_attempt: int
    """Number of the attempt of its run, from 0."""
    error_message: str | None
    """Message of the error with which the attempt ended."""
    cpu_time_ms: int | None
    memory_peak_mb: int | None
    counters: dict[str, int | float]
    metadata: dict[str, Json]


class Executions(msgspec.Struct, frozen=True):
    """A page of executions."""

    executions: Sequence[Execution]
    """The executions, newest run first, and within it the last attempt first."""
    total: int
    """Number of executions of the job that are kept; if `capped`, of its newest ten thousand runs."""
    limit: int
    offset: int
    capped: bool = False
    """True if the job has more executions than `total` says."""


def execution_of(run: Run, attempt: Attempt, number: int | None) -> Execution:
    """Return an attempt of a run as an execution."""
    began = attempt.started_at or attempt.claimed_at
    took = None if attempt.ended_at is None else max(0.0, (attempt.ended_at - began).total_seconds())
    return Execution(
        id=execution_id(run.id, attempt.fence),
        run_id=run.id,
        job_id=run.job,
        execution_number=number,
        status="running" if attempt.outcome is None else _STATUS[attempt.outcome],
        outcome=attempt.outcome,
        started_at=began,
        completed_at=attempt.ended_at,
        duration_ms=None if took is None else round(took * 1_000),
        retry_attempt=max(0, attempt.no - 1),
        error_message=None if attempt.error is None else attempt.error.message,
        cpu_time_ms=attempt.cpu_time_ms,
        memory_peak_mb=attempt.memory_peak_mb,
        counters=attempt.counters,
        metadata=run.metadata,
    )


def execution_id(run_id: str, fence: int) -> str:
    return f"{run_id}:{fence}"


def parts_of(id: str) -> tuple[str, int | None]:
    """Return the run, by its id or a part of it, and the fence; None if the id names a run alone: its last attempt."""
    run, colon, fence = id.partition(":")
    if not colon:
        return run, None
    if not (fence.isascii() and fence.isdigit() and len(fence) < 10):
        raise NotFound(f"run {run:.80} has no such execution", hint="an execution is an attempt of a run")
    return run, int(fence)


class ExecutionTotals(msgspec.Struct, frozen=True):
    """Totals over all executions."""

    total: int
    average_duration_ms: int | None
    success_rate: float | None


class SchedulerMetrics(msgspec.Struct, frozen=True):
    """Totals from the database, the same from every server. `jobs` and `executions` are counted at most every 30
    seconds, when somebody asks."""

    jobs: dict[str, int]
    """Numbers of jobs by state."""
    executions: ExecutionTotals
    """Totals over all executions."""
    last_check_at: datetime | None
    """When the scheduler last looked for work."""
    last_metrics_update: datetime
    """When jobs and executions were counted."""
    stale_locks_cleared: int
    """Number of expired leases that were taken away, by any process."""


class CountedJobs(msgspec.Struct, frozen=True):
    """Jobs by state, totals over their runs, and the newest heartbeat (µs), as they were `at` (µs)."""

    jobs: dict[str, int]
    executions: ExecutionTotals
    at: int
    heartbeat: int | None

    def is_fresh(self, now: int) -> bool:
        return 0 <= now - self.at < _FRESH


def counted_jobs(states: Iterable[JobState], tally: Tally, now: int, heartbeat: int | None) -> CountedJobs:
    counts = Counter(states)
    return CountedJobs({state.value: counts[state] for state in JobState}, _totals(tally), now, heartbeat)


class SchedulerFacts(msgspec.Struct, frozen=True):
    """Facts from which the metrics are derived: what was counted, and the number of expired leases that were taken
    away."""

    counted: CountedJobs
    taken_away: int


def metrics_of(facts: SchedulerFacts) -> SchedulerMetrics:
    """Return the metrics."""
    counted = facts.counted
    return SchedulerMetrics(
        counted.jobs, counted.executions, maybe_instant(counted.heartbeat), instant(counted.at), facts.taken_away
    )


def _totals(tally: Tally) -> ExecutionTotals:
    total = sum(count for state, count in tally.states.items() if state != RunState.SKIPPED)
    average = round(tally.busy / tally.timed / 1_000) if tally.timed else None
    return ExecutionTotals(total, average, success_rate(tally.states))
