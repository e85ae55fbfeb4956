"""`/api/v1/worker/runs/{id}/…`: reports of external workers about a run, under its fence. Stale fences are refused."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer
from rota.api.operations.routing import declared
from rota.client.external.external import ExternalClient
from rota.core.access.roles import Role
from rota.core.external.external import MOST_LINES_AT_ONCE, Heartbeat
from rota.core.progress.steps import StepState
from rota.core.states import RunState

_HEARTBEAT = {"cancelling": False, "lease_until": "2026-01-31T08:00:30Z"}


class FenceBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`fence` is the number that came with the run."""

    fence: int


class ErrorBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """An error of an external job."""

    message: str
    type: str | None = None
    code: str | None = None
    traceback: str | None = None


class ProgressBody(FenceBody, kw_only=True):
    """An omitted value keeps its last report."""

    percentage: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    summary: str | None = None


class StepBody(FenceBody, kw_only=True):
    """State of a step, with its result or error."""

    id: str
    state: str
    result: Any = None
    error: str | ErrorBody | None = None


class LineBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A log line."""

    text: str
    level: str = "info"
    logger: str = "external"


class LogsBody(FenceBody, kw_only=True):
    """Log lines to append. With `no`, a sequence number that grows from 1, lines sent again are not stored twice."""

    lines: Annotated[list[str | LineBody], msgspec.Meta(min_length=1, max_length=MOST_LINES_AT_ONCE)]
    no: int | None = None


class CompleteBody(FenceBody, kw_only=True):
    """The result of the run."""

    result: Any = None


class FailBody(FenceBody, kw_only=True):
    """The run is retried by its job's policy, or `after` that long; with `retry: false` it is not retried."""

    error: str | ErrorBody
    """What went wrong."""
    retry: bool = True
    after: str | None = None
    """Time until the retry, instead of the job's policy."""


class RunStateAnswer(msgspec.Struct):
    """The run's new state."""

    state: RunState


class StepStateAnswer(msgspec.Struct):
    """The state that the step is in."""

    state: StepState


async def _external(request: Request) -> tuple[ExternalClient, str]:
    return (await client_of(request)).external, request.path_params["id"]


@operation(Role.WORKER, body=FenceBody, answers=Heartbeat, takes={"fence": 1}, gives=_HEARTBEAT)
async def heartbeat(request: Request) -> Response:
    """Renew the lease of a run.

    `cancelling` in the answer means that the run should stop.
    """
    body = shaped(await json_body(request), FenceBody)
    external, run_id = await _external(request)
    return answer(await external.heartbeat(run_id, body.fence))


@operation(
    Role.WORKER,
    body=ProgressBody,
    answers=Heartbeat,
    takes={"fence": 1, "percentage": 40, "summary": "page 4 of 10"},
    gives=_HEARTBEAT,
)
async def report_progress(request: Request) -> Response:
    """Report progress of a run; also renews its lease."""
    body = shaped(await json_body(request), ProgressBody)
    external, run_id = await _external(request)
    return answer(await external.progress(run_id, body.fence, body.percentage, body.summary))


@operation(
    Role.WORKER,
    body=StepBody,
    answers=StepStateAnswer,
    takes={"fence": 1, "id": "fetch", "state": "succeeded", "result": {"items": 25}},
    gives={"state": "succeeded"},
)
async def record_step(request: Request) -> Response:
    """Record the state of a step.

    A step recorded as done stays done.
    """
    body = shaped(await json_body(request), StepBody)
    external, run_id = await _external(request)
    error = _error(body.error)
    return answer(
        StepStateAnswer(await external.step(run_id, body.fence, body.id, body.state, result=body.result, error=error))
    )


@operation(Role.WORKER, body=LogsBody, status=204, takes={"fence": 1, "lines": ["page 4 of 10"], "no": 1})
async def append_logs(request: Request) -> Response:
    """Append lines to the log of a run."""
    body = shaped(await json_body(request), LogsBody)
    external, run_id = await _external(request)
    lines = [line if isinstance(line, str) else msgspec.structs.asdict(line) for line in body.lines]
    await external.logs(run_id, body.fence, lines, no=body.no)
    return Response(status_code=204)


@operation(
    Role.WORKER,
    body=CompleteBody,
    answers=RunStateAnswer,
    takes={"fence": 1, "result": {"label": "cat"}},
    gives={"state": "succeeded"},
)
async def complete_run(request: Request) -> Response:
    """Complete a run.

    If the run waits for a step, that step is completed. A repeated request gets the first answer.
    """
    body = shaped(await json_body(request), CompleteBody)
    external, run_id = await _external(request)
    return answer(RunStateAnswer(await external.complete(run_id, body.fence, body.result)))


@operation(
    Role.WORKER,
    body=FailBody,
    answers=RunStateAnswer,
    takes={"fence": 1, "error": {"message": "no paper", "code": "printer"}, "after": "5m"},
    gives={"state": "scheduled"},
)
async def fail_run(request: Request) -> Response:
    """Report that a run failed.

    A repeated request gets the first answer.
    """
    body = shaped(await json_body(request), FailBody)
    external, run_id = await _external(request)
    error = _error(body.error)
    assert error is not None
    return answer(RunStateAnswer(await external.fail(run_id, body.fence, error, retry=body.retry, after=body.after)))


@operation(Role.WORKER, body=FenceBody, answers=RunStateAnswer, takes={"fence": 1}, gives={"state": "cancelled"})
async def report_cancelled(request: Request) -> Response:
    """Confirm that a run has stopped because its cancellation was requested."""
    body = shaped(await json_body(request), FenceBody)
    external, run_id = await _external(request)
    return answer(RunStateAnswer(await external.cancelled(run_id, body.fence)))


def _error(error: str | ErrorBody | None) -> str | dict[str, Any] | None:
    return msgspec.structs.asdict(error) if isinstance(error, ErrorBody) else error


ROUTES = [
    declared("/worker/runs/{id}/heartbeat", POST=heartbeat),
    declared("/worker/runs/{id}/progress", POST=report_progress),
    declared("/worker/runs/{id}/step", POST=record_step),
    declared("/worker/runs/{id}/logs", POST=append_logs),
    declared("/worker/runs/{id}/complete", POST=complete_run),
    declared("/worker/runs/{id}/fail", POST=fail_run),
    declared("/worker/runs/{id}/cancelled", POST=report_cancelled),
]
