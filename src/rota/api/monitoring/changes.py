"""`/api/v1/stream`: change hints as server-sent events."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rota.api.auth.identity import identity_of
from rota.api.operations.event_stream import KEEP_ALIVE, MEDIA, Streams, event_of, with_keep_alive
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of
from rota.api.operations.routing import declared
from rota.client.subscription import checked_topic
from rota.core.access.roles import Role

_HINT = (
    "id: 5be1c0ff-1\nevent: hint\n"
    'data: {"topic":"runs","id":"0198c5a2-7d3e-7aaa-8000-9c1b2f3a4d5e","state":"running","version":17}\n\n'
)


class StreamQuery(msgspec.Struct):
    """`topics`, separated by commas: `runs`, `schedules`, `workers`, `queues`, `run:<id>`."""

    topics: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)] = "runs"


@operation(Role.VIEWER, query=StreamQuery, media=MEDIA, gives=_HINT)
async def stream_changes(request: Request) -> Response:
    """Stream change hints as server-sent events.

    The first hint of each topic reports its current version; then one follows each change, at most four times a second.
    A hint has no data: read what changed again. `id` and `state` name the run: the topic's own, or with `runs` one that
    changed, in whichever process; they are null if that is not known, and with other topics. If the request has a
    `Last-Event-ID`, a `reset` comes first, because hints in between are lost.
    """
    topics = [topic.strip() for topic in checked_query(request, StreamQuery).topics.split(",") if topic.strip()]
    client, actor = await client_of(request), identity_of(request).actor
    streams: Streams = request.app.state.streams
    streams.require_room(actor)
    for topic in topics:  # a wrong one must be refused before the response begins
        checked_topic(topic)
    again = "last-event-id" in request.headers

    async def events() -> AsyncIterator[bytes]:
        name, number = secrets.token_hex(4), 0
        with streams.counted(actor):
            async with client.subscribe(topics) as hints:
                if again:
                    yield b"event: reset\ndata: {}\n\n"
                async for hint in with_keep_alive(hints, streams.over):
                    if hint is None:
                        yield KEEP_ALIVE
                        continue
                    number += 1
                    yield event_of("hint", hint, f"{name}-{number}")

    return StreamingResponse(events(), media_type=MEDIA, headers={"x-accel-buffering": "no"})


ROUTES = [declared("/stream", GET=stream_changes)]
