"""What subscribers get: hints that something changed, by topic."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Self
from uuid import UUID

import msgspec

from rota.core.states import RunState
from rota.errors import Invalid, did_you_mean

COARSE_TOPICS = ("runs", "schedules", "workers", "queues")
OF_RUN = "run:"
_MOST_TOPICS = 1_000


class Hint(msgspec.Struct, frozen=True):
    """`version` is another number after every change. Only hints about one run have its `id`, and its `state`;
    that is None if there is no such run."""

    topic: str
    id: str | None
    state: RunState | None
    version: int


class Subscription:
    """What changed, by and by: `async for hint in subscription`. First, once, how everything is.

    Whoever is slow misses what was in between, never the last: of each topic at most one hint waits.
    """

    def __init__(self, topics: frozenset[str], leave: Callable[[Subscription], Awaitable[None]]) -> None:
        self.topics = topics
        self._leave = leave
        self._waiting: dict[str, Hint] = {}
        self._more = asyncio.Event()
        self._ended = False
        self._failure: Exception | None = None

    def tell(self, hint: Hint) -> None:
        self._waiting[hint.topic] = hint
        self._more.set()

    def end(self, failure: Exception | None = None) -> None:
        """With a `failure`, whoever waits for the next hint gets that."""
        self._ended, self._failure = True, failure
        self._more.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Hint:
        await self._more.wait()
        if self._failure is not None:
            raise self._failure
        if self._ended:
            raise StopAsyncIteration
        hint = self._waiting.pop(next(iter(self._waiting)))
        if not self._waiting:
            self._more.clear()
        return hint

    async def close(self) -> None:
        self.end()
        await self._leave(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def checked_topics(topics: Iterable[str]) -> frozenset[str]:
    wanted = frozenset(map(checked_topic, topics))
    if not 1 <= len(wanted) <= _MOST_TOPICS:
        raise Invalid(f"a subscription has 1 to {_MOST_TOPICS} topics, not {len(wanted)}")
    return wanted


def checked_topic(topic: str) -> str:
    if topic in COARSE_TOPICS:
        return topic
    with contextlib.suppress(ValueError):
        if topic.startswith(OF_RUN):
            return f"{OF_RUN}{UUID(topic[len(OF_RUN) :])}"
    hint = did_you_mean(topic, COARSE_TOPICS) or ""
    raise Invalid(f"there is no topic {topic!r:.80}", hint=f"{hint}; or write run: and a whole id".removeprefix("; "))
