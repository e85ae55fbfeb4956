"""A play: operations at once, one step at a time, in an order that somebody chooses.

Whoever waits for a lock is read from PostgreSQL (`pg_blocking_pids`), never guessed from a time. If all that are not
done wait, it is a deadlock: one is made its victim, as PostgreSQL does after a second, and the store's own rule decides
what becomes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

import asyncpg
import msgspec

from tests.explorer.actors import Actor, Standing, Step
from tests.explorer.footprints import Footprint

Act = Callable[[], Coroutine[Any, Any, object]]
_LOOKS = (0.001, 0.002, 0.005, 0.01, 0.02)
_MOST_STEPS = 400
_BLOCKED = "select pid, pg_blocking_pids(pid) from unnest($1::int[]) as pid"


class Choice(msgspec.Struct, frozen=True):
    """What may come next. `last`: who made the last step; `within`: whether that one is inside a transaction."""

    enabled: dict[str, Step]
    waiting: dict[str, Step]
    last: str | None
    within: bool


class Chooser(Protocol):
    def __call__(self, choice: Choice) -> str: ...


class Stuck(Exception):
    """A play that comes to no end."""


class Deadlock(msgspec.Struct, frozen=True):
    """`waits`: who waited in which statement; `victim`: who was rolled back."""

    waits: tuple[tuple[str, str], ...]
    victim: str

    def __str__(self) -> str:
        return "deadlock: " + ", ".join(f"{who} in {what}" for who, what in self.waits)

    @property
    def kind(self) -> str:
        return " × ".join(sorted(what for _, what in self.waits))


class Played(msgspec.Struct, frozen=True):
    """`schedule`: a letter for each step. `woken`: queues that were told of work, in the order of commits."""

    schedule: str
    steps: tuple[tuple[str, str], ...]
    answers: tuple[object, ...]
    deadlocks: tuple[Deadlock, ...]
    woken: frozenset[str | None]
    waited: bool


class Play:
    def __init__(self, actors: Sequence[Actor], monitor: asyncpg.Connection[Any]) -> None:
        self.moved = asyncio.Event()
        self._actors = actors
        self._monitor = monitor
        self._by_pid = {actor.database.pid: actor for actor in actors}

    async def run(self, acts: Sequence[Act], choose: Chooser) -> Played:
        tasks = [actor.begin(self, act) for actor, act in zip(self._actors, acts, strict=True)]
        steps: list[tuple[str, str]] = []
        deadlocks: list[Deadlock] = []
        waited = False
        last: Actor | None = None
        try:
            while True:
                await self._settle()
                enabled = {a.name: a.step for a in self._actors if a.standing is Standing.AT_STEP and a.step}
                waiting = {a.name: a.step for a in self._actors if a.standing is Standing.UNDER_WAY and a.step}
                waited = waited or bool(waiting)
                if not enabled and not waiting:
                    break
                if not enabled:
                    deadlocks.append(await self._break_deadlock(last))
                    continue
                within = last is not None and last.within
                choice = Choice(enabled, waiting, last.name if last else None, within)
                last = self._named(choose(choice))
                assert last.step is not None
                steps.append((last.name, last.step.name))
                if len(steps) > _MOST_STEPS:
                    raise Stuck(f"{_MOST_STEPS} steps: {''.join(who for who, _ in steps)}")
                last.go()
            await asyncio.gather(*tasks)  # what is no error of rota's is raised
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return Played(
            schedule="".join(who for who, _ in steps),
            steps=tuple(steps),
            answers=tuple(actor.answer for actor in self._actors),
            deadlocks=tuple(deadlocks),
            woken=frozenset().union(*(queues for actor in self._actors for queues in actor.woken)),
            waited=waited,
        )

    def _named(self, name: str) -> Actor:
        return next(actor for actor in self._actors if actor.name == name)

    async def _settle(self) -> None:
        """Wait until everybody stands before a step, waits for a lock of another, or is done."""
        look = 0
        while running := [actor for actor in self._actors if actor.standing is Standing.UNDER_WAY]:
            self.moved.clear()
            try:
                await asyncio.wait_for(self.moved.wait(), _LOOKS[min(look, len(_LOOKS) - 1)])
            except TimeoutError:
                look += 1
                if await self._all_wait(running):
                    return

    async def _all_wait(self, running: Sequence[Actor]) -> bool:
        rows = await self._monitor.fetch(_BLOCKED, [actor.database.pid for actor in running])
        blockers = {pid: [other for other in others if other in self._by_pid] for pid, others in rows}
        for actor in running:
            actor.blocked_by = blockers.get(actor.database.pid, [])
        # Somebody may have moved while this was asked.
        return all(actor.blocked_by and actor.standing is Standing.UNDER_WAY for actor in running)

    async def _break_deadlock(self, last: Actor | None) -> Deadlock:
        """Roll back whoever closed the circle."""
        waiting = [actor for actor in self._actors if actor.standing is Standing.UNDER_WAY]
        victim = last if last in waiting else waiting[-1]
        assert victim is not None
        told = tuple((actor.name, actor.step.name) for actor in waiting if actor.step)
        victim.victim = True
        self.moved.clear()
        await self._monitor.execute("select pg_cancel_backend($1)", victim.database.pid)
        while victim.standing is Standing.UNDER_WAY:
            await self.moved.wait()
            self.moved.clear()
        return Deadlock(told, victim.name)


def merged(steps: Sequence[Step]) -> Footprint:
    whole = Footprint()
    for step in steps:
        whole |= step.footprint
    return whole
