"""`/api/v1/stream`: hints that something changed, as server-sent events."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rota.api.identity import identity_of
from rota.api.operations import operation
from rota.api.queries import asked
from rota.api.refusals import TooManyStreams
from rota.api.requests import client_of
from rota.api.routing import declared
from rota.core.access import Role
from rota.errors import Unavailable
from rota.subscribing import checked_topic

T = TypeVar("T")

MEDIA = "text/event-stream"
MOST_STREAMS = 500
_HEARTBEAT = 15.0
STILL_HERE = b": still here\n\n"


class StreamQuery(msgspec.Struct):
    """`topics` with commas between them: `runs`, `schedules`, `workers`, `queues`, `run:<id>`."""

    topics: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)] = "runs"


class Streams:
    """How many each caller has open: one that forgets to close them must not take them from the others.

    When the server stops, `over` ends all of them: a page that is open somewhere must not hold it up.
    """

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._open: Counter[str] = Counter()
        self._most = most
        self.over = asyncio.Event()

    @contextmanager
    def one_more(self, actor: str) -> Iterator[None]:
        self.require_room(actor)
        self._open[actor] += 1
        try:
            yield
        finally:
            self._open[actor] -= 1
            if not self._open[actor]:
                del self._open[actor]

    def require_room(self, actor: str) -> None:
        if self._open[actor] >= self._most:
            raise TooManyStreams(self._most)


@operation(Role.VIEWER, query=StreamQuery, media=MEDIA)
async def stream(request: Request) -> Response:
    """Hints as server-sent events: what changed, to be looked at again.

    First, once, how everything is; then each change, at most four times a second. A `reset` comes first if the caller
    names a `Last-Event-ID`: what was in between is not known any more.
    """
    topics = [topic.strip() for topic in asked(request, StreamQuery).topics.split(",") if topic.strip()]
    client, actor = await client_of(request), identity_of(request).actor
    streams: Streams = request.app.state.streams
    streams.require_room(actor)
    for topic in topics:  # refused now, and not when the answer has begun
        checked_topic(topic)
    again = "last-event-id" in request.headers

    async def told() -> AsyncIterator[bytes]:
        name, number = secrets.token_hex(4), 0
        with streams.one_more(actor):
            async with client.subscribe(topics) as hints:
                if again:
                    yield b"event: reset\ndata: {}\n\n"
                async for hint in or_silence(hints, streams.over):
                    if hint is None:
                        yield STILL_HERE
                        continue
                    number += 1
                    yield event_of("hint", hint, f"{name}-{number}")

    return StreamingResponse(told(), media_type=MEDIA, headers={"x-accel-buffering": "no"})


async def or_silence(things: AsyncIterator[T], over: asyncio.Event) -> AsyncIterator[T | None]:
    """None after a while without any: proxies and dead connections want to hear something."""
    following, ending = asyncio.ensure_future(anext(things)), asyncio.ensure_future(over.wait())
    try:
        while True:
            await asyncio.wait([following, ending], timeout=_HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                return
            if not following.done():
                yield None
                continue
            try:
                found = following.result()
            except (StopAsyncIteration, Unavailable):
                return
            following = asyncio.ensure_future(anext(things))
            yield found
    finally:
        for task in (following, ending):
            task.cancel()
        await asyncio.gather(following, ending, return_exceptions=True)


def event_of(kind: str, value: object, id: str) -> bytes:
    return f"id: {id}\nevent: {kind}\ndata: ".encode() + msgspec.json.encode(value) + b"\n\n"


ROUTES = [declared("/stream", GET=stream)]
