"""Change hints by polling. One poller serves all subscribers of a client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet
from zlib import crc32

from rota.client.subscription import COARSE_TOPICS, OF_RUN, RUNS, Hint, Subscription, checked_topics
from rota.core.runs.run import Run
from rota.errors import Unavailable
from rota.values.scope import Scope

if TYPE_CHECKING:
    from rota.store import Store
    from rota.store.monitoring.changes import RunVersion

log = logging.getLogger("rota.hints")

_GAP = 0.25
_IDLE = 0.5
_MOST_FOLLOWED = 100


class ChangePoller:
    """Poller that runs only while there are subscribers, at most four times a second. It reads nothing else unless the
    database's change mark has moved."""

    def __init__(self, store: Store, rest: Callable[[bool], Awaitable[None]] | None = None) -> None:
        """Take `rest`, called between polls with whether the last poll found changes; by default, sleep."""
        self._store = store
        self._rest = rest or self._sleep
        self._subscribers: dict[str, set[Subscription]] = {}
        self._discreet: WeakSet[Subscription] = WeakSet()
        self._known: dict[str, Hint] = {}
        self._mark: object = None
        self._recent: dict[str, RunVersion] | None = None
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def subscribe(self, topics: Iterable[str], within: Scope | None = None) -> Subscription:
        """Subscribe to topics from now on. Close the subscription, or use it in `async with`.

        `within` a scope, hints of the topic `runs` name no run: it may be of another scope.
        """
        names = checked_topics(topics)
        subscription = Subscription(names, self._leave)
        if within is not None:
            self._discreet.add(subscription)
        for topic in names:
            self._subscribers.setdefault(topic, set()).add(subscription)
            # A known version is delivered at once; otherwise forget the mark, so that the next poll reads the topic.
            if topic in self._known:
                subscription.tell(self._known[topic])
            else:
                self._mark = None
        self._woken.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        return subscription

    async def follow(self, run_id: str, within: Scope | None = None) -> AsyncGenerator[Run]:
        """Yield the run now, and again at each hint about it, until it is final. `within` a scope, other runs are
        unknown."""
        run_id = await self._store.find_run(run_id, within)
        async with self.subscribe([f"{OF_RUN}{run_id}"]) as hints:
            async for _ in hints:
                run = await self._get(run_id)
                yield run
                if run.state.is_final:
                    return

    async def _get(self, run_id: str) -> Run:
        """Read the run, retrying until the database answers: no further hint may come."""
        while True:
            try:
                return await self._store.get_run(run_id)
            except Unavailable:
                await self._rest(False)

    async def step(self) -> bool:
        """Poll once; return whether anything changed."""
        mark = await self._store.watch.mark()
        if mark == self._mark:
            return False
        watched = set(self._subscribers)
        runs = await self._store.watch.runs(sorted(topic[len(OF_RUN) :] for topic in watched - {*COARSE_TOPICS}))
        # The mark was read before the runs: a change in between is found now, and again by the next poll, never missed.
        # A topic subscribed meanwhile has not been read, so the next poll must not stop at the mark.
        self._mark = mark if watched >= self._subscribers.keys() else None
        hints = {topic: Hint(topic, None, None, crc32(repr(mark).encode())) for topic in watched & {*COARSE_TOPICS}}
        for topic in watched - hints.keys():
            run = runs.get(run_id := topic[len(OF_RUN) :])
            hints[topic] = Hint(topic, run_id, run.state if run else None, run.version if run else 0)
        changed = [hint for topic, hint in hints.items() if self._known.get(topic) != hint]
        named = await self._changed_runs() if RUNS in watched else []
        for hint in changed:
            if hint.topic == RUNS and named and RUNS in self._known:
                self._known[RUNS] = hint  # for those who come later; the others are told which runs these were
            else:
                self._publish(hint)
        for hint in named:
            nameless = Hint(RUNS, None, None, hint.version)
            for subscription in self._subscribers.get(RUNS, ()):
                subscription.tell(nameless if subscription in self._discreet else hint)
        return bool(changed)

    async def _changed_runs(self) -> list[Hint]:
        """Return a hint for each run that is new or changed since the last poll; none at the first."""
        before = self._recent
        live = sorted(run_id for run_id, run in (before or {}).items() if not run.state.is_final)
        recent = await self._store.watch.recent(live[-_MOST_FOLLOWED:])
        self._recent = recent
        if before is None:
            return []
        return [Hint(RUNS, id, run.state, run.version) for id, run in recent.items() if before.get(id) != run]

    def _publish(self, hint: Hint) -> None:
        for subscription in self._subscribers.get(hint.topic, ()):
            self._known[hint.topic] = hint
            subscription.tell(hint)

    async def _watch(self) -> None:
        unlisten = self._store.listen(lambda _queue: self._woken.set())
        try:
            while True:
                self._woken.clear()
                await self._rest(await self._poll())
        finally:
            unlisten()

    async def _poll(self) -> bool:
        """Poll once, surviving a database outage: changes made meanwhile are found afterwards."""
        try:
            changed = await self.step()
        except Exception as error:
            if not self._failing:
                log.warning("cannot poll for changes, retrying: %s", error)
            self._failing = True
            return False
        self._failing = False
        return changed

    async def _sleep(self, changed: bool) -> None:
        await asyncio.sleep(_GAP)
        if not changed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_IDLE - _GAP):
                    await self._woken.wait()

    async def _leave(self, subscription: Subscription) -> None:
        for topic in subscription.topics & self._subscribers.keys():
            self._subscribers[topic].discard(subscription)
            if not self._subscribers[topic]:
                del self._subscribers[topic]
                self._known.pop(topic, None)
        if RUNS not in self._subscribers:
            self._recent = None
        if not self._subscribers:
            await self._stop()

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def close(self) -> None:
        for subscribers in self._subscribers.values():
            for subscription in subscribers:
                subscription.end()
        self._subscribers.clear()
        self._known.clear()
        await self._stop()
