"""`/api/v1/runs/{id}/logs`: the log of a run, by page or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rota.api.auth.identity import identity_of
from rota.api.operations.event_stream import KEEP_ALIVE, MEDIA, Streams, event_of, with_keep_alive
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of
from rota.api.operations.response import answer, page
from rota.api.operations.verb_operation import view_of_run
from rota.client.client import Client
from rota.client.runs.pages import TAIL, LineCursor
from rota.core.access.roles import Role
from rota.core.progress.notes import MOST_LINES, LogLine
from rota.core.runs.run import Run
from rota.verbs.examples import LOG_LINE

_BOUNDS = {"minimum": 1, "maximum": MOST_LINES}
Lines = Annotated[int, Meta(extra_json_schema=_BOUNDS, description="Maximum number of items")]  # the verb checks them
View = Callable[[Any], Any]


class LogQuery(msgspec.Struct):
    """A page of lines, or a stream of them."""

    limit: Lines = 1_000
    cursor: LineCursor = None
    tail: Annotated[Lines | None, Meta(description=TAIL)] = None
    follow: Annotated[bool, Meta(description="Stream new lines until the run is final")] = False


class LogPage(msgspec.Struct):
    """A page of log lines."""

    items: Sequence[LogLine]
    next_cursor: str | None


@operation(Role.VIEWER, query=LogQuery, answers=LogPage, gives={"items": [LOG_LINE], "next_cursor": "1.17"})
async def list_logs(request: Request) -> Response:
    """List log lines of a run, oldest first.

    With `follow=1`, stream them as server-sent events: a `line` each, and `end` with the run's state when it is final.
    An event's `id` is the line's `cursor`, so a browser that reconnects continues after it.
    """
    query = checked_query(request, LogQuery)
    client, run_id = await client_of(request), request.path_params["id"]
    view = await view_of_run(request, client)
    if query.follow:
        return await _followed(request, client, view, query)
    lines = await client.logs(run_id, limit=query.limit, cursor=query.cursor, tail=query.tail)
    # A short page is the last one for now: who follows continues after the cursor of the last line.
    return answer(page([view(line) for line in lines], lines[-1].cursor if len(lines) == query.limit else None))


async def _followed(request: Request, client: Client, view: View, query: LogQuery) -> Response:
    run = await client.get(request.path_params["id"], steps=False)
    seen = request.headers.get("last-event-id")
    cursor, tail = (seen, None) if seen else (query.cursor, query.tail)
    # A wrong cursor must be refused before the response begins.
    first = await client.logs(run.id, limit=query.limit, cursor=cursor, tail=tail)
    actor = identity_of(request).actor
    streams: Streams = request.app.state.streams
    streams.require_room(actor)

    async def events() -> AsyncIterator[bytes]:
        with streams.counted(actor):
            async for part in _lines(client, run.id, first, cursor, view, streams.over):
                yield part

    return StreamingResponse(events(), media_type=MEDIA, headers={"x-accel-buffering": "no"})


async def _lines(
    client: Client, run_id: str, lines: Sequence[LogLine], cursor: str | None, view: View, over: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield these lines, and others as they come. The state is read before the lines: when it is final, all lines are
    there."""
    for line in lines:
        cursor = line.cursor
        yield event_of("line", view(line), cursor)
    async for run in with_keep_alive(client.follow(run_id), over):
        if run is None:
            yield KEEP_ALIVE
            continue
        while lines := await client.logs(run_id, cursor=cursor):
            for line in lines:
                cursor = line.cursor
                yield event_of("line", view(line), cursor)
        if run.state.is_final:
            yield event_of("end", _ended(run), cursor or "0.0")
            return


def _ended(run: Run) -> dict[str, object]:
    return {"id": run.id, "state": run.state, "finished_at": run.finished_at}
