"""Runs as numbered executions, and totals over them, for callers that use these terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from rota.core.jobs.status import JobState
from rota.core.monitoring.statistics import JobStats
from rota.core.runs.run import Attempt, Run


class NumberedRun(msgspec.Struct, frozen=True):
    """Run with its number among the runs of its job, from 1, and its last attempt."""

    run: Run
    number: int
    attempt: Attempt | None


class NumberedRuns(msgspec.Struct, frozen=True):
    """Some runs of a job, newest first, and how many it has. `first` is the number of the first of them."""

    runs: Sequence[Run]
    total: int
    first: int


class ExecutionTotals(msgspec.Struct, frozen=True):
    """Totals over all executions."""

    total: int
    average_duration_ms: int | None
    success_rate: float | None


class SchedulerMetrics(msgspec.Struct, frozen=True):
    """`jobs` are counted by state. `stale_locks_cleared` counts the expired leases that this process has taken away."""

    jobs: dict[str, int]
    """Numbers of jobs by state."""
    executions: ExecutionTotals
    """Totals over all executions."""
    last_check_at: datetime | None
    """When the scheduler last looked for work."""
    last_metrics_update: datetime
    """When this was computed."""
    stale_locks_cleared: int
    """Number of expired leases that this process has taken away."""


class SchedulerFacts(msgspec.Struct, frozen=True):
    """Facts from which the metrics are derived: states and statistics of all jobs, the newest heartbeat, and now."""

    states: Sequence[JobState]
    stats: Sequence[JobStats]
    heartbeat_at: datetime | None
    now: datetime


def metrics_of(facts: SchedulerFacts, taken_away: int) -> SchedulerMetrics:
    """Return the metrics; `taken_away` is the number of expired leases."""
    states = Counter(facts.states)
    jobs = {state.value: states[state] for state in JobState}
    return SchedulerMetrics(jobs, _totals(facts.stats), facts.heartbeat_at, facts.now, taken_away)


def _totals(stats: Sequence[JobStats]) -> ExecutionTotals:
    total = sum(job.total - job.skipped for job in stats)
    went_well = sum(job.succeeded for job in stats)
    tried = went_well + sum(job.failed + job.timed_out + job.expired for job in stats)
    timed = [(job.total - job.skipped, job.average_duration_ms) for job in stats if job.average_duration_ms is not None]
    weight = sum(count for count, _ in timed)
    average = None if not weight else round(sum(count * average for count, average in timed) / weight)
    return ExecutionTotals(total, average, went_well / tried if tried else None)
