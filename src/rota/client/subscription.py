"""Change hints by topic, as subscribers receive them."""

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
RUNS = "runs"
_MOST_TOPICS = 1_000
_MOST_PENDING = 100


class Hint(msgspec.Struct, frozen=True):
    """Hint that something changed. `version` differs after every change.

    `id` and `state` are those of a run: of the topic's own, or with `runs` of one that changed, whichever process
    changed it. They are None if it is not known which, and for other topics; the state also if there is no such run.
    """

    topic: str
    id: str | None
    state: RunState | None
    version: int


class Subscription:
    """Change hints: `async for hint in subscription`. The first hint of each topic reports its current version.

    At most one hint per topic and run is pending: a slow consumer misses intermediate hints, never the last one. If too
    many are pending, they become one without an id.
    """

    def __init__(self, topics: frozenset[str], leave: Callable[[Subscription], Awaitable[None]]) -> None:
        self.topics = topics
        self._leave = leave
        self._waiting: dict[tuple[str, str | None], Hint] = {}
        self._more = asyncio.Event()
        self._ended = False
        self._failure: Exception | None = None

    def tell(self, hint: Hint) -> None:
        """Add a hint, replacing a pending one of the same topic and run."""
        if len(self._waiting) >= len(self.topics) + _MOST_PENDING and (hint.topic, hint.id) not in self._waiting:
            hint = Hint(hint.topic, None, None, hint.version)
            self._waiting = {key: other for key, other in self._waiting.items() if key[0] != hint.topic}
        self._waiting[hint.topic, hint.id] = hint
        self._more.set()

    def end(self, failure: Exception | None = None) -> None:
        """End the iteration; with a `failure`, raise it to the consumer."""
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
    """Return the topics, or raise `Invalid`."""
    names = frozenset(map(checked_topic, topics))
    if not 1 <= len(names) <= _MOST_TOPICS:
        raise Invalid(f"a subscription must have 1 to {_MOST_TOPICS} topics, not {len(names)}")
    return names


def checked_topic(topic: str) -> str:
    if topic in COARSE_TOPICS:
        return topic
    with contextlib.suppress(ValueError):
        if topic.startswith(OF_RUN):
            return f"{OF_RUN}{UUID(topic[len(OF_RUN) :])}"
    hint = did_you_mean(topic, COARSE_TOPICS) or ""
    raise Invalid(f"unknown topic {topic!r:.80}", hint=f"{hint}; or write run: and a whole id".removeprefix("; "))
