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
from rota.core.access.roles import Role
from rota.core.progress.notes import MOST_LINES, LogLine
from rota.core.runs.run import Run
from rota.verbs.examples import LOG_LINE

LastLines = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MOST_LINES})]  # the verb checks it
View = Callable[[Any], Any]


class LogQuery(msgspec.Struct):
    """A page of lines, or a stream of them."""

    after: Annotated[str | None, Meta(description="`cursor` of the last line seen")] = None
    last: Annotated[
        Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MOST_LINES})] | None,
        Meta(description="Only so many lines, from the end"),
    ] = None
    follow: Annotated[bool, Meta(description="Stream new lines until the run is final")] = False


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
    client, run_id = await client_of(request), request.path_params["id"]
    view = await view_of_run(request, client)
    if query.follow:
        return await _followed(request, client, view, request.headers.get("last-event-id") or query.after)
    lines = await client.logs(run_id, after=query.after, last=query.last)
    return answer(page([view(line) for line in lines], lines[-1].cursor if lines else query.after))


async def _followed(request: Request, client: Client, view: View, after: str | None) -> Response:
    run = await client.get(request.path_params["id"], steps=False)
    await client.logs(run.id, after=after)  # a wrong cursor must be refused before the response begins
    actor = identity_of(request).actor
    streams: Streams = request.app.state.streams
    streams.require_room(actor)

    async def events() -> AsyncIterator[bytes]:
        with streams.counted(actor):
            async for part in _lines(client, run.id, after, view, streams.over):
                yield part

    return StreamingResponse(events(), media_type=MEDIA, headers={"x-accel-buffering": "no"})


async def _lines(
    client: Client, run_id: str, after: str | None, view: View, over: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield lines as they come. The state is read before the lines: when it is final, all lines are there."""
    async for run in with_keep_alive(client.follow(run_id), over):
        if run is None:
            yield KEEP_ALIVE
            continue
        while lines := await client.logs(run_id, after=after):
            after = lines[-1].cursor
            for line in lines:
                yield event_of("line", view(line), line.cursor)
        if run.state.is_final:
            yield event_of("end", _ended(run), after or "0")
            return


def _ended(run: Run) -> dict[str, object]:
    return {"id": run.id, "state": run.state, "finished_at": run.finished_at}
