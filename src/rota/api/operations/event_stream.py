"""Server-sent events: encoding, keep-alive, and limits on open streams per caller."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from rota.api.http.rejection import ServerFull, TooManyStreams
from rota.errors import Unavailable

T = TypeVar("T")


MEDIA = "text/event-stream"


MOST_STREAMS = 500
"""Of one caller."""
_MOST_FILES = 10_000


_HEARTBEAT = 15.0


KEEP_ALIVE = b": keep-alive\n\n"


class Streams:
    """Count of open streams per caller, limited so that one who forgets to close them does not exhaust the server; and
    of all callers, which leaves half of the files that the process may open to everything else.

    `over` is set when the server stops and ends all streams, which would otherwise delay the shutdown.
    """

    def __init__(self, most: int = MOST_STREAMS, in_all: int | None = None) -> None:
        self._open: Counter[str] = Counter()
        self._most = most
        self._in_all = in_all or _half_of_the_files()
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
        if self._open.total() >= self._in_all:
            raise ServerFull(self._in_all)


def _half_of_the_files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (_MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, _MOST_FILES)) // 2


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
