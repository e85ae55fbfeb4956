"""`/api/v1/runs:bulk`, `/api/v1/runs:purge`, `/api/v1/schedules:bulk`: one command for all that match."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Literal, assert_never

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rota.api.auth.identity import identity_of
from rota.api.http.problems import problem
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer
from rota.api.operations.routing import declared
from rota.api.operations.run_filter import RunQuery, filter_of
from rota.client.client import Client
from rota.core.access.roles import Role
from rota.core.runs.bulk import MOST_COUNTED, BulkResult, Counted, Purged, SoFar
from rota.errors import BulkMismatch, Invalid, RotaError

_LINES = "application/x-ndjson"
_MOST_SCHEDULES = 1_000
_WITHIN = "1s"

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNTED)]


class RunsBulkBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Command and filter. If more than `expected` match, nothing is changed. An empty filter needs `everything`.
    `dry_run` only counts."""

    action: Literal["cancel", "retry"]
    filter: RunQuery = msgspec.field(default_factory=RunQuery)
    expected: Count | None = None
    everything: bool = False
    # The client's method checks it: with the same words as for one run, whoever calls it.
    reason: Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 1_000})] | None = None
    dry_run: bool = False


class SchedulesBulkBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All schedules of a job or an owner, or those named."""

    action: Literal["pause", "resume", "enable", "disable"]
    job: str | None = None
    owner: str | None = None
    names: Annotated[list[str], msgspec.Meta(max_length=_MOST_SCHEDULES)] | None = None
    expected: Count | None = None
    reason: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None
    dry_run: bool = False


@operation(
    Role.OPERATOR,
    body=RunsBulkBody,
    answers=BulkResult | Counted,
    takes={"action": "retry", "filter": {"job": "crawl", "state": ["failed"]}, "expected": 200},
    gives={"matched": 3, "done": 2, "refused": []},
)
async def bulk_runs(request: Request) -> Response:
    """Cancel or retry all runs that match a filter.

    With `Accept: application/x-ndjson`, the response has a line of progress for each batch, and the result last.
    """
    body = shaped(await json_body(request), RunsBulkBody)
    client = await client_of(request)
    run_filter = filter_of(request, body.filter)
    if body.dry_run:
        return answer(await client.count(run_filter, most=MOST_COUNTED, within=_WITHIN))
    actor = identity_of(request).actor

    async def act(progress: SoFar | None) -> BulkResult:
        options = {"expected": body.expected, "everything": body.everything, "actor": actor, "progress": progress}
        match body.action:
            case "cancel":
                return await client.cancel_many(run_filter, reason=body.reason, **options)  # type: ignore[arg-type]
            case "retry":
                return await client.retry_many(run_filter, **options)  # type: ignore[arg-type]
            case _:
                assert_never(body.action)

    if _LINES in request.headers.get("accept", ""):
        return StreamingResponse(_progress_lines(act), media_type=_LINES)
    return answer(await act(None))


class RunsPurgeBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Filter of runs that have ended. If more than `expected` match, nothing is deleted. An empty filter without
    `older_than` needs `everything`. `dry_run` only counts."""

    filter: RunQuery = msgspec.field(default_factory=RunQuery)
    older_than: Annotated[str, msgspec.Meta(description="Only runs that ended longer ago")] | None = None
    expected: Count | None = None
    everything: bool = False
    dry_run: bool = False


@operation(
    Role.ADMIN,
    body=RunsPurgeBody,
    answers=Purged,
    takes={"filter": {"job": "crawl", "state": ["succeeded"]}, "older_than": "7d"},
    gives={"matched": 1200, "done": 1199, "refused": [], "reusable_bytes": 4096000, "advice": "new rows use the space"},
)
async def purge_runs(request: Request) -> Response:
    """Delete all runs that match a filter and have ended.

    Runs that something still needs stay: they are counted, with the reason. With `Accept: application/x-ndjson`, the
    response has a line of progress for each batch, and the result last.
    """
    body = shaped(await json_body(request), RunsPurgeBody)
    client = await client_of(request)
    run_filter = filter_of(request, body.filter)
    actor = identity_of(request).actor

    async def act(progress: SoFar | None) -> Purged:
        return await client.purge(
            run_filter,
            older_than=body.older_than,
            dry_run=body.dry_run,
            actor=actor,
            expected=body.expected,
            everything=body.everything,
            progress=progress,
        )

    if _LINES in request.headers.get("accept", ""):
        return StreamingResponse(_progress_lines(act), media_type=_LINES)
    return answer(await act(None))


async def _progress_lines(act: Callable[[SoFar], Awaitable[BulkResult]]) -> AsyncIterator[bytes]:
    """Yield a line of progress after each batch, and finally the result or the problem."""
    parts: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def work() -> None:
        try:
            done = await act(lambda so_far: parts.put_nowait(_line({"progress": so_far})))
            parts.put_nowait(_line({"result": done}))
        except RotaError as error:
            parts.put_nowait(bytes(problem(error).body) + b"\n")
        finally:
            parts.put_nowait(None)

    working = asyncio.create_task(work())
    try:
        while (part := await parts.get()) is not None:
            yield part
    finally:
        if not working.done():
            working.cancel()


def _line(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"


@operation(
    Role.OPERATOR,
    body=SchedulesBulkBody,
    answers=BulkResult,
    takes={"action": "pause", "job": "crawl", "reason": "maintenance"},
    gives={"matched": 3, "done": 3, "refused": []},
)
async def bulk_schedules(request: Request) -> Response:
    """Pause, resume, enable or disable all schedules of a job or an owner, or those named."""
    body = shaped(await json_body(request), SchedulesBulkBody)
    client = await client_of(request)
    names = await _names(client, body)
    if body.expected is not None and len(names) > body.expected:
        raise BulkMismatch(body.expected, "schedules")
    result = BulkResult(len(names))
    for name in names if not body.dry_run else ():
        try:
            await _act_on(client, name, body, identity_of(request).actor)
        except RotaError as error:
            result = result.after(1, {name: error})
        else:
            result = result.after(1, {})
    return answer(result)


async def _names(client: Client, body: SchedulesBulkBody) -> list[str]:
    if body.names is not None:
        return list(dict.fromkeys(body.names))
    if body.job is None and body.owner is None:
        raise Invalid("a bulk command needs a selection of schedules", hint="give job, owner or names")
    schedules = await client.schedules.list(job=body.job, owner=body.owner, limit=_MOST_SCHEDULES)
    if len(schedules) == _MOST_SCHEDULES:
        raise Invalid(f"more than {_MOST_SCHEDULES} schedules match", hint="pause their job instead")
    return [schedule.name for schedule in schedules]


async def _act_on(client: Client, name: str, body: SchedulesBulkBody, actor: str) -> None:
    schedules = client.schedules
    match body.action:
        case "pause":
            await schedules.pause(name, reason=body.reason, actor=actor)
        case "resume":
            await schedules.resume(name, actor=actor)
        case "enable":
            await schedules.enable(name, actor=actor)
        case "disable":
            await schedules.disable(name, actor=actor)
        case _:
            assert_never(body.action)


ROUTES = [
    declared("/runs:bulk", POST=bulk_runs),
    declared("/runs:purge", POST=purge_runs),
    declared("/schedules:bulk", POST=bulk_schedules),
]
