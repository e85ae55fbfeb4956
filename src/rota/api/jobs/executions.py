"""Runs as numbered executions, and scheduler metrics, for callers that use these terms."""

from __future__ import annotations

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
from rota.core.access.roles import Role
from rota.core.runs.run import Attempt, Run
from rota.core.states import RunState

_S = RunState
_STATUS = {
    _S.SCHEDULED: "pending", _S.QUEUED: "pending", _S.RUNNING: "running", _S.WAITING: "running",
    _S.CANCELLING: "running", _S.SUCCEEDED: "completed", _S.FAILED: "failed", _S.TIMED_OUT: "failed",
    _S.EXPIRED: "failed", _S.CANCELLED: "cancelled", _S.SKIPPED: "skipped",
}  # fmt: skip


class ExecutionQuery(msgspec.Struct):
    """Page of executions by `limit` and `offset`."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    offset: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0


class Execution(msgspec.Struct, kw_only=True):
    """A run, as one of its job's numbered executions."""

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


@operation(Role.VIEWER, query=ExecutionQuery, answers=Executions)
async def list_executions(request: Request) -> Response:
    """List the runs of a job as numbered executions, newest first."""
    query = checked_query(request, ExecutionQuery)
    client = await client_of(request)
    page = await client.executions(request.path_params["name"], limit=query.limit, offset=query.offset)
    numbered = [_execution(run, page.first - place) for place, run in enumerate(all_shown(request, page.runs))]
    return answer(Executions(numbered, page.total, query.limit, query.offset))


@operation(Role.VIEWER, answers=ExecutionDetail)
async def get_execution(request: Request) -> Response:
    """Get a run as a numbered execution, with its resource usage."""
    execution = await (await client_of(request)).execution(request.path_params["id"])
    facts = msgspec.structs.asdict(_execution(shown(request, execution.run), execution.number))
    return answer(ExecutionDetail(**facts, **_used(execution.attempt)))


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


ROUTES = [
    declared("/jobs/{name}/executions", GET=list_executions),
    declared("/executions/{id}", GET=get_execution),
]
