"""`/api/v1/runs/{id}/logs`: the log of a run, by page or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import discretion
from rota.api.operations.event_stream import KEEP_ALIVE, MEDIA, Streams, event_of, with_keep_alive
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.api.runs.runs import run_of
from rota.client.client import Client
from rota.core.access.roles import Role
from rota.core.progress.notes import LogLine
from rota.core.runs.redaction import Discreet
from rota.core.runs.run import Run
from rota.verbs.examples import LOG_LINE


class LogQuery(msgspec.Struct):
    """`after` is the cursor of the last line seen, `last` limits the answer to that many lines from the end, and
    `follow` streams new lines."""

    after: str | None = None
    """Cursor of the last line seen."""
    last: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    follow: bool = False


class LogPage(msgspec.Struct):
    """A page of log lines."""

    items: Sequence[LogLine]
    next_cursor: str | None


@operation(Role.VIEWER, query=LogQuery, answers=LogPage, gives={"items": [LOG_LINE], "next_cursor": "1:1:0"})
async def list_logs(request: Request) -> Response:
    """List log lines of a run, oldest first.

    With `follow=1`, stream them as server-sent events: a `line` each, and `end` with the run's state when it is final.
    An event's `id` is a cursor, so a browser that reconnects continues after it.
    """
    query = checked_query(request, LogQuery)
    client = await client_of(request)
    run = await run_of(request, client)
    if query.follow:
        after = request.headers.get("last-event-id") or query.after
        return await _followed(request, client, run, after)
    lines = await client.logs(run.id, after=query.after, last=query.last)
    discreet = discretion(request, run)
    visible = lines if discreet is None else [discreet.line(line) for line in lines]
    return answer(page(visible, lines[-1].cursor if lines else query.after))


async def _followed(request: Request, client: Client, run: Run, after: str | None) -> Response:
    await client.logs(run.id, after=after)  # a wrong cursor must be refused before the response begins
    actor = identity_of(request).actor
    streams: Streams = request.app.state.streams
    streams.require_room(actor)

    async def events() -> AsyncIterator[bytes]:
        with streams.counted(actor):
            async for part in _lines(client, run.id, after, discretion(request, run), streams.over):
                yield part

    return StreamingResponse(events(), media_type=MEDIA, headers={"x-accel-buffering": "no"})


async def _lines(
    client: Client, run_id: str, after: str | None, discreet: Discreet | None, over: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield lines as they come. The state is read before the lines: when it is final, all lines are there."""
    async for run in with_keep_alive(client.follow(run_id), over):
        if run is None:
            yield KEEP_ALIVE
            continue
        while lines := await client.logs(run_id, after=after):
            after = lines[-1].cursor
            for line in lines:
                yield event_of("line", line if discreet is None else discreet.line(line), line.cursor)
        if run.state.is_final:
            yield event_of("end", _ended(run), after or "0")
            return


def _ended(run: Run) -> dict[str, object]:
    return {"id": run.id, "state": run.state, "finished_at": run.finished_at}


ROUTES = [declared("/runs/{id}/logs", GET=list_logs, scoped=True)]
