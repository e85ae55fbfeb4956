"""Explore: play a pair of operations in every order of steps, and compare each end with those of serial orders."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import asyncpg
import msgspec

from rota.errors import RotaError
from rota.store import Store
from rota.store.databases.postgres.postgres import PostgresDatabase
from tests.explorer.actors import Actor
from tests.explorer.play import Play, Played, Stuck
from tests.explorer.rest import Looked, Rest
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.search import Diverged, Search
from tests.explorer.tables import Content, Tables, difference
from tests.support.clock import ManualClock

_SERIAL_ORDERS = 200

Act = Callable[[Party], Coroutine[Any, Any, Any]]


class End(msgspec.Struct, frozen=True):
    """How a play ended: answers in words, and all rows."""

    answers: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def content(self) -> Content:
        return dict(self.rows)


class Finding(msgspec.Struct, frozen=True):
    """What is wrong with a play, and the line that shows it again."""

    kind: str
    what: str
    line: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}\n  {self.line}"


class Explored(msgspec.Struct):
    """`late`: ends that are those of a serial order only once everything has come to rest."""

    plays: int = 0
    cut: int = 0
    blocked: int = 0
    serial: int = 0
    late: Counter[str] = msgspec.field(default_factory=Counter)
    findings: dict[tuple[str, str], Finding] = {}
    """The first of each kind."""
    seconds: float = 0.0
    whole: bool = True

    def add(self, finding: Finding) -> None:
        self.findings.setdefault((finding.kind, finding.what), finding)


class SettableClock(ManualClock):
    """A manual clock that goes back with the tables."""

    @property
    def elapsed(self) -> timedelta:
        return self._elapsed

    def set(self, elapsed: timedelta) -> None:
        self._elapsed = elapsed


class Explorer:
    """A database with one scene at a time, and actors on it."""

    def __init__(
        self, url: str, actors: Sequence[Actor], monitor: asyncpg.Connection[Any], clock: SettableClock
    ) -> None:
        self._url = url
        self.actors = actors
        self.monitor = monitor
        self._clock = clock
        self._tables: Tables | None = None
        self._scene: Scene | None = None
        self._facts: Facts = {}
        self._began_at = timedelta(0)
        self._rest: Rest | None = None

    async def enter(self, scene: Scene) -> None:
        """Make the scene, unless it is there."""
        if self._scene is scene:
            return
        self._tables = self._tables or await Tables.of(self.monitor)
        await self._tables.empty()
        self._clock.set(timedelta(0))
        numbers = iter(range(1, 1_000_000))
        store = Store(
            PostgresDatabase(self._url, self._clock, deadline=timedelta(minutes=1), size=2),
            lambda: f"01970000-0000-7000-8000-{next(numbers):012x}",
        )
        self._facts = await scene.arrange(store, self._clock)
        await store.close()
        self._began_at = self._clock.elapsed
        await self._tables.save()
        self._scene = scene
        if self._rest is not None:
            await self._rest.close()
        self._rest = Rest(self._url, self._clock, self.monitor, scene.known, await self._tables.content())

    async def close(self) -> None:
        if self._rest is not None:
            await self._rest.close()
        for actor in self.actors:
            await actor.database.close()
        await self.monitor.close()

    async def explore(
        self,
        names: Sequence[str],
        preemptions: int = 2,
        *,
        most: int | None = None,
        first: bool = False,
        asleep: bool = True,
    ) -> Explored:
        """Play all orders of these operations. `most`: stop after so many plays; `first`: at the first finding."""
        began = time.monotonic()
        result = Explored()
        operations = [self._operation(name) for name in names]
        try:
            serial = await self._serial(operations)
            result.serial = len(serial)
            search = Search(preemptions, asleep=asleep)
            while not search.over and not (first and result.findings):
                if most is not None and result.plays >= most:
                    result.whole = False
                    break
                await self._one(operations, serial, result, search)
        except (Stuck, Diverged) as error:
            result.add(Finding(type(error).__name__.lower(), str(error), self._line(names, "")))
        result.seconds = time.monotonic() - began
        return result

    async def replay(self, names: Sequence[str], schedule: str) -> tuple[Played, list[Finding]]:
        """Play one order, which is made of letters."""
        operations = [self._operation(name) for name in names]
        serial = await self._serial(operations)
        letters = iter(schedule)

        def choose(choice: Any) -> str:
            letter = next(letters, None)
            if letter not in choice.enabled:
                letter = choice.last if choice.last in choice.enabled else min(choice.enabled)
            return str(letter)

        played, end = await self._play(operations, choose)
        late: Counter[str] = Counter()
        return played, [finding async for finding in self._judged(operations, played, end, serial, late)]

    def _operation(self, name: str) -> Operation:
        assert self._scene is not None
        return self._scene.operation(name)

    def _line(self, names: Sequence[str], schedule: str) -> str:
        assert self._scene is not None
        words = " ".join(f"'{name}'" for name in names)
        return f"python3 dev.py explore one {self._scene.name} {words} --order {schedule}"

    async def _serial(self, operations: Sequence[Operation]) -> dict[End, str]:
        """Return the ends of all orders in which no transaction is taken apart, each with one of them.

        Of batches, also those of their parts, in the order given and in the other.
        """
        ends: dict[End, str] = {}
        await self._atomic(operations, ends)
        if any(operation.parts for operation in operations):
            ways = [
                {operation.parts or (operation.act,), operation.parts[::-1] or (operation.act,)}
                for operation in operations
            ]
            for way in product(*ways):
                await self._atomic([Operation("", partial(_one_by_one, parts)) for parts in way], ends)
        return ends

    async def _atomic(self, operations: Sequence[Operation], ends: dict[End, str]) -> None:
        search = Search(0, atomic=True)
        for _ in range(_SERIAL_ORDERS):
            played, end = await self._play(operations, search.choose)
            ends.setdefault(end, played.schedule)
            await self._looked(end)
            search.next()
            if search.over:
                return

    async def _one(
        self, operations: Sequence[Operation], serial: dict[End, str], result: Explored, search: Search
    ) -> None:
        played, end = await self._play(operations, search.choose)
        result.plays += 1
        result.cut += search.cut
        result.blocked += played.waited
        async for finding in self._judged(operations, played, end, serial, result.late):
            result.add(finding)
        search.next()

    async def _play(self, operations: Sequence[Operation], choose: Callable[..., str]) -> tuple[Played, End]:
        assert self._tables is not None
        await self._tables.restore()
        self._clock.set(self._began_at)
        actors = self.actors[: len(operations)]
        acts = [partial(operation.act, self._party(actor)) for operation, actor in zip(operations, actors, strict=True)]
        played = await Play(actors, self.monitor).run(acts, choose)
        rows = tuple(sorted((await self._tables.content()).items()))
        return played, End(tuple(told(answer) for answer in played.answers), rows)

    def _party(self, actor: Actor) -> Party:
        return Party(actor.name, Store(actor.database, actor.new_id), self._facts, actor.new_id)

    async def _judged(
        self,
        operations: Sequence[Operation],
        played: Played,
        end: End,
        serial: dict[End, str],
        late: Counter[str],
    ) -> AsyncIterator[Finding]:
        assert self._rest is not None
        line = self._line([operation.name for operation in operations], played.schedule)
        for deadlock in played.deadlocks:
            yield Finding("deadlock", str(deadlock), line)
        looked = await self._looked(end)
        for kind, what in (*looked.wrong, *self._rest.unheard(end.content, played.woken)):
            yield Finding(kind, what, line)
        if end in serial:
            return
        excuses = {operation.passes_over for operation in operations if operation.passes_over}
        if excuses and looked.became in [(await self._looked(other)).became for other in serial]:
            late.update(excuses)
            return
        if excuse := self._scene.excuse([operation.name for operation in operations]) if self._scene else None:
            late[excuse] += 1
            return
        yield Finding("not serial", self._compared(end, serial), line)

    async def _looked(self, end: End) -> Looked:
        assert self._rest is not None
        return await self._rest.look(end.rows)

    def _compared(self, end: End, serial: dict[End, str]) -> str:
        def distance(other: End) -> int:
            return len(difference(end.content, other.content)) + (end.answers != other.answers)

        nearest = min(serial, key=distance)
        told = [f"unlike {serial[nearest]}"]
        if nearest.answers != end.answers:
            told += [f"- {' | '.join(nearest.answers)}", f"+ {' | '.join(end.answers)}"]
        return "\n    ".join(told + difference(end.content, nearest.content))


async def _one_by_one(parts: Sequence[Act], party: Party) -> object:
    answers = [await part(party) for part in parts]
    return answers[0] if len(answers) == 1 else sorted(one for answer in answers for one in answer)


def told(answer: object) -> str:
    if isinstance(answer, RotaError):
        return f"{type(answer).__name__}: {answer}"
    if isinstance(answer, set | frozenset):
        return repr(sorted(answer))
    return repr(answer)


async def explorer_on(url: str, count: int = 3) -> Explorer:
    """Open an explorer on a database with tables; everything in it is deleted."""
    clock = SettableClock()
    actors = [Actor(letter, url, clock) for letter in "ABC"[:count]]
    for actor in actors:
        await actor.database.ready()
    return Explorer(url, actors, await asyncpg.connect(url), clock)
