"""Runs as numbered executions, and scheduler metrics, for callers that use these terms."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.redaction import all_shown, shown
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of
from rota.api.operations.response import answer
from rota.api.operations.routing import declared
from rota.client.client import MOST_LISTED, Client
from rota.core.access.roles import Role
from rota.core.jobs.status import JobState
from rota.core.monitoring.statistics import JobStats
from rota.core.runs.run import Attempt, Run, RunFilter
from rota.core.states import RunState

_S = RunState
_STATUS = {
    _S.SCHEDULED: "pending", _S.QUEUED: "pending", _S.RUNNING: "running", _S.WAITING: "running",
    _S.CANCELLING: "running", _S.SUCCEEDED: "completed", _S.FAILED: "failed", _S.TIMED_OUT: "failed",
    _S.EXPIRED: "failed", _S.CANCELLED: "cancelled", _S.SKIPPED: "skipped",
}  # fmt: skip
_MOST_COUNTED = 1_000_000


class ExecutionQuery(msgspec.Struct):
    """Page of executions by `limit` and `offset`."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    offset: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0


class Execution(msgspec.Struct, kw_only=True):
    """A run. `execution_number` counts the runs of its job from 1, `retry_attempt` its attempts from 0."""

    id: str
    job_id: str
    """Name of the job."""
    execution_number: int
    """Number of the run among those of its job, from 1."""
    status: str
    """State of the run."""
    started_at: datetime | None
    completed_at: datetime | None
    """When it ended; null until then."""
    duration_ms: int | None
    retry_attempt: int
    """Number of the attempt, from 0."""
    error_message: str | None
    """Message of the error."""
    metadata: dict[str, Any]


class ExecutionDetail(Execution, kw_only=True):
    """An execution with its resource usage."""

    cpu_time_ms: int | None
    memory_peak_mb: int | None
    counters: dict[str, int | float]


class Executions(msgspec.Struct):
    """A page of executions."""

    executions: list[Execution]
    """The executions, newest first."""
    total: int
    limit: int
    offset: int


class ExecutionTotals(msgspec.Struct):
    """Totals over all executions."""

    total: int
    average_duration_ms: int | None
    success_rate: float | None


class SchedulerMetrics(msgspec.Struct):
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


@operation(Role.VIEWER, query=ExecutionQuery, answers=Executions)
async def list_executions(request: Request) -> Response:
    """List the runs of a job as numbered executions, newest first."""
    query = checked_query(request, ExecutionQuery)
    client, name = await client_of(request), request.path_params["name"]
    await client.job(name)
    total = (await client.count(RunFilter(job=name), most=_MOST_COUNTED)).count
    runs = await _newest(client, name, query.offset + query.limit)
    page = runs[query.offset :]
    numbered = [_execution(run, total - query.offset - place) for place, run in enumerate(all_shown(request, page))]
    return answer(Executions(numbered, total, query.limit, query.offset))


async def _newest(client: Client, job: str, count: int) -> list[Run]:
    runs: list[Run] = []
    while len(runs) < count:
        size = min(MOST_LISTED, count - len(runs))
        page = await client.list(RunFilter(job=job), limit=size, before=runs[-1].id if runs else None)
        runs += page
        if len(page) < size:
            break
    return runs


@operation(Role.VIEWER, answers=ExecutionDetail)
async def get_execution(request: Request) -> Response:
    """Get a run as a numbered execution, with its resource usage."""
    client = await client_of(request)
    run = shown(request, await client.get(request.path_params["id"]))
    older = RunFilter(job=run.job, created_before=run.created_at)
    number = (await client.count(older, most=_MOST_COUNTED)).count + 1
    attempts = await client.attempts(run.id)
    facts = msgspec.structs.asdict(_execution(run, number))
    return answer(ExecutionDetail(**facts, **_used(attempts[-1] if attempts else None)))


def _execution(run: Run, number: int) -> Execution:
    took = None if run.started_at is None or run.finished_at is None else run.finished_at - run.started_at
    return Execution(
        id=run.id,
        job_id=run.job,
        execution_number=number,
        status=_STATUS[run.state],
        started_at=run.started_at,
        completed_at=run.finished_at,
        duration_ms=None if took is None else round(took.total_seconds() * 1_000),
        retry_attempt=max(0, run.attempt - 1),
        error_message=None if run.error is None else run.error.message,
        metadata=run.metadata,
    )


def _used(attempt: Attempt | None) -> dict[str, Any]:
    if attempt is None:
        return {"cpu_time_ms": None, "memory_peak_mb": None, "counters": {}}
    return {
        "cpu_time_ms": attempt.cpu_time_ms,
        "memory_peak_mb": attempt.memory_peak_mb,
        "counters": attempt.counters,
    }


@operation(Role.VIEWER, answers=SchedulerMetrics)
async def get_scheduler_metrics(request: Request) -> Response:
    """Get totals over all jobs and executions."""
    client = await client_of(request)
    statuses = await client.job_statuses()
    states = Counter(status.state.value for status in statuses)
    stats = [await client.job_stats(status.job) for status in statuses]
    heartbeats = [worker.seen_at for worker in await client.workers.list()]
    return answer(
        SchedulerMetrics(
            {state.value: states.get(state.value, 0) for state in JobState},
            _totals(stats),
            max(heartbeats, default=None),
            await client.time(),
            client.meters.taken_away,
        )
    )


def _totals(stats: list[JobStats]) -> ExecutionTotals:
    total = sum(job.total - job.skipped for job in stats)
    went_well = sum(job.succeeded for job in stats)
    tried = went_well + sum(job.failed + job.timed_out + job.expired for job in stats)
    timed = [(job.total - job.skipped, job.average_duration_ms) for job in stats if job.average_duration_ms is not None]
    weight = sum(count for count, _ in timed)
    average = None if not weight else round(sum(count * average for count, average in timed) / weight)
    return ExecutionTotals(total, average, went_well / tried if tried else None)


ROUTES = [
    declared("/jobs/{name}/executions", GET=list_executions),
    declared("/executions/{id}", GET=get_execution),
    declared("/scheduler/metrics", GET=get_scheduler_metrics),
]
