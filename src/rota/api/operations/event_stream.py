"""Server-sent events: encoding, keep-alive, and limits on open streams per caller."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from rota.api.http.rejection import TooManyStreams
from rota.errors import Unavailable

T = TypeVar("T")


MEDIA = "text/event-stream"


MOST_STREAMS = 500


_HEARTBEAT = 15.0


KEEP_ALIVE = b": keep-alive\n\n"


class Streams:
    """Count of open streams per caller, limited so that one who forgets to close them does not exhaust the server.

    `over` is set when the server stops and ends all streams, which would otherwise delay the shutdown.
    """

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._open: Counter[str] = Counter()
        self._most = most
        self.over = asyncio.Event()

    @contextmanager
    def counted(self, actor: str) -> Iterator[None]:
        """Count a stream while the context is open."""
        self.require_room(actor)
        self._open[actor] += 1
        try:
            yield
        finally:
            self._open[actor] -= 1
            if not self._open[actor]:
                del self._open[actor]

    def require_room(self, actor: str) -> None:
        """Raise `TooManyStreams` if the caller has too many open."""
        if self._open[actor] >= self._most:
            raise TooManyStreams(self._most)


async def with_keep_alive(source: AsyncIterator[T], over: asyncio.Event) -> AsyncIterator[T | None]:
    """Yield the items, and None after each 15 seconds without one: a keep-alive, which also detects dead
    connections."""
    following, ending = asyncio.ensure_future(anext(source)), asyncio.ensure_future(over.wait())
    try:
        while True:
            await asyncio.wait([following, ending], timeout=_HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                return
            if not following.done():
                yield None
                continue
            try:
                item = following.result()
            except (StopAsyncIteration, Unavailable):
                return
            following = asyncio.ensure_future(anext(source))
            yield item
    finally:
        for task in (following, ending):
            task.cancel()
        await asyncio.gather(following, ending, return_exceptions=True)


def event_of(kind: str, value: object, id: str) -> bytes:
    """Encode a server-sent event."""
    return f"id: {id}\nevent: {kind}\ndata: ".encode() + msgspec.json.encode(value) + b"\n\n"
