"""Change hints of a server, over connections that may break."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable

import msgspec

from rota.client.subscription import OF_RUN, Hint, Subscription, checked_topics
from rota.core.runs.run import Run
from rota.errors import RotaError, Unavailable
from rota.remote.decode import read
from rota.remote.transport import Transport, path_of

log = logging.getLogger("rota.remote")

_EVENTS = "text/event-stream"
_REST = 1.0


class ServerEvent(msgspec.Struct):
    """One server-sent event."""

    event: str
    data: bytes


async def events_of(lines: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
    """Parse server-sent events from lines. Comments, which only keep the connection alive, are skipped."""
    event, data = "message", b""
    async for line in lines:
        name, _, value = line.partition(b": ")
        if name == b"event":
            event = value.decode()
        elif name == b"data":
            data += value
        elif not line and data:
            yield ServerEvent(event, data)
            event, data = "message", b""


class RemoteHints:
    """Subscriptions to a server, one connection each. A broken connection is reopened; only hints that are new since
    are delivered."""

    def __init__(self, transport: Transport, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._transport = transport
        self._pause = pause
        self._listening: dict[Subscription, asyncio.Task[None]] = {}

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        subscription = Subscription(checked_topics(topics), self._leave)
        self._listening[subscription] = asyncio.get_running_loop().create_task(self._listen(subscription))
        return subscription

    async def follow(self, get: Callable[[str], Awaitable[Run]], run_id: str) -> AsyncGenerator[Run]:
        """Yield the run now, and again at each hint about it, until it is final."""
        run_now = await get(run_id)
        async with self.subscribe([f"{OF_RUN}{run_now.id}"]) as hints:
            async for _ in hints:
                run = await self._get(get, run_now.id)
                yield run
                if run.state.is_final:
                    return

    async def _get(self, get: Callable[[str], Awaitable[Run]], run_id: str) -> Run:
        """Read the run, retrying until the server answers: no further hint may come."""
        while True:
            try:
                return await get(run_id)
            except Unavailable:
                await self._pause(_REST)

    async def _listen(self, subscription: Subscription) -> None:
        latest: dict[str, Hint] = {}  # of each topic: the first hint of a new connection may be the last of the old one
        failing = False
        while True:
            try:
                async for hint in self._hints(subscription.topics):
                    failing = False
                    if latest.get(hint.topic) != hint:
                        latest[hint.topic] = hint
                        subscription.tell(hint)
            except Unavailable as error:
                if not failing:
                    log.warning("cannot receive change hints, retrying: %s", error)
                failing = True
            except RotaError as error:  # a retry would be refused, too
                subscription.end(error)
                return
            await self._pause(_REST)

    async def _hints(self, topics: frozenset[str]) -> AsyncIterator[Hint]:
        query = {"topics": ",".join(sorted(topics))}
        async with self._transport.stream("GET", path_of("stream"), query, accept=_EVENTS) as lines:
            async for event in events_of(lines):
                if event.event == "hint":
                    yield read(event.data, Hint)

    async def _leave(self, subscription: Subscription) -> None:
        task = self._listening.pop(subscription, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def close(self) -> None:
        for subscription in list(self._listening):
            await subscription.close()
