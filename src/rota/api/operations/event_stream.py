"""Server-sent events: what streams have in common, and how many each caller may have open."""

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


STILL_HERE = b": still here\n\n"


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
