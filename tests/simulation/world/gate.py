"""Between a process and its database: delay, loss and death, one operation at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from rota.errors import Unavailable
from rota.store.databases.database import Hint, Tx, Work
from rota.store.databases.epoch import Standing
from rota.values.clock import Clock
from tests.simulation.world.backends import Kind
from tests.simulation.world.loop import Node

if TYPE_CHECKING:
    import random

    from tests.simulation.world.world import World

T = TypeVar("T")
Blow = Literal["crash_before", "crash_after", "lost_reply", "repeated", "refused", "late", "slow"]
"""`lost_reply`: it was done, and nobody is told. `repeated`: so it is done again, as drivers do, if it may be. `late`:
its caller gives up, and then it is done, as by a server that did not hear of that. `slow`: it was done, and its answer
takes longer than a lease.
"""

BLOWS: tuple[Blow, ...] = ("crash_before", "crash_after", "lost_reply", "repeated", "refused")
_LATE = 5.0
SLOW = 13.0
_MOSTLY, _OFTEN, _SELDOM = 0.8, 0.95, 0.99
_LONGEST = 9.0  # seconds: there and back, an operation has its deadline


class Writing(msgspec.Struct):
    """Of notes: how long it took, and whether it failed, or was given up."""

    since: float
    until: float | None = None
    failed: bool = True


class NodeClock:
    """A host's clock: wrong by `offset` seconds. Only the database's decides anything."""

    def __init__(self, world: World, offset: float) -> None:
        self._world = world
        self._offset = offset

    def micros(self) -> int:
        return self._world.true_micros() + int(self._offset * 1e6)

    def monotonic(self) -> float:
        return self._world.loop.time() + 1_000 + abs(self._offset)


class Gate:
    """A `Database` for one process."""

    def __init__(self, world: World, node: Node, clock: Clock, rng: random.Random) -> None:
        self.dialect = world.backend.dialect
        self.clock = clock
        self.polls = False
        self.standing = Standing()
        self.hears = world.script.hints
        self._world = world
        self._node = node
        self._random = rng

    async def transact(
        self, work: Work[T], *, repeatable: bool = True, deadline: timedelta | None = None, acts: bool = False
    ) -> T:
        return await self._telling("transact", work, repeatable)

    async def alone(self, work: Work[T]) -> T:
        return await self._telling("alone", work, True)

    async def glance(self, work: Work[T]) -> T:
        return await self._operate("glance", work, True)

    async def read(self, work: Work[T]) -> T:
        return await self._operate("read", work, True)

    async def heed(self, work: Work[T]) -> T:
        return await self.read(work)

    async def foresee(self, work: Work[Any]) -> None: ...

    async def _telling(self, kind: Kind, work: Work[T], repeatable: bool) -> T:
        """Hint to those whom it woke, when its answer has come: whoever gets none tells nobody."""
        woken: set[str | None] = set()

        async def collecting(tx: Tx) -> T:
            result = await work(tx)
            woken.clear()
            woken.update(tx.woken)
            return result

        answer = await self._operate(kind, collecting, repeatable, operation(work))
        self.notify(woken)
        return answer

    async def _operate(self, kind: Kind, work: Work[T], repeatable: bool, name: str | None = None) -> T:
        name = name or operation(work)
        if not name.startswith("NoteStore"):
            return await self._operate_as(name, kind, work, repeatable)
        writing = Writing(self._world.loop.time())
        self._world.writings.setdefault(self._node.name, []).append(writing)
        try:
            answer = await self._operate_as(name, kind, work, repeatable)
            writing.failed = False
        finally:
            writing.until = self._world.loop.time()
        return answer

    async def _operate_as(self, name: str, kind: Kind, work: Work[T], repeatable: bool) -> T:
        world, node, asked_at = self._world, self._node, self._world.loop.time()
        await self._travel()
        blow = world.blow_for(node, name)
        if blow == "crash_before":
            await self._die()
        if blow == "late":
            world.later(self._random.random() * _LATE, lambda: self._do(kind, work, name, repeatable, asked_at))
        if blow in ("refused", "late") or world.is_away(node, name):
            raise Unavailable("the database cannot be reached")
        answer = self._do(kind, work, name, repeatable, asked_at)
        if blow == "crash_after":
            await self._die()
        if blow == "lost_reply" or (blow == "repeated" and not repeatable):
            raise Unavailable("the connection broke before the answer")
        if blow == "repeated":
            first, answer = answer, self._do(kind, work, name, repeatable, asked_at)
            world.checker.repeated(name, first, answer)
        await (self._world.loop.rest(SLOW) if blow == "slow" else self._travel())
        return answer()

    def _do(self, kind: Kind, work: Work[T], name: str, repeatable: bool, asked_at: float) -> Callable[[], T]:
        """Whatever comes of it reaches the caller later, if at all."""
        try:
            result = self._world.backend.do(kind, work, repeatable=repeatable)
        except Exception as error:
            failure = error

            def fail() -> T:
                raise failure

            return fail
        if kind in ("transact", "alone"):
            self._world.committed(self._node, name, asked_at)
        return lambda: result

    async def _travel(self) -> None:
        draw, far = self._random.random(), self._world.script.distance
        span = 0.003 if draw < _MOSTLY else 0.05 if draw < _OFTEN else 0.5 if draw < _SELDOM else 3.0
        await self._world.loop.rest(min(self._random.random() * span * far, _LONGEST))

    async def _die(self) -> None:
        self._world.kill(self._node)
        await asyncio.get_running_loop().create_future()

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[GateSession]:
        yield GateSession(self._telling)

    def version(self) -> object | None:
        """Not told: an answer from memory would be no operation, and the databases would no longer go alike."""
        return None

    def notify(self, queues: Iterable[str | None]) -> None:
        for queue in sorted(queues, key=str):
            self._world.hint(queue, self._random)

    def listen(self, hint: Hint) -> Callable[[], None]:
        return self._world.listen(self._node, hint)

    async def renew(self) -> None:
        """Do nothing: nothing here depends on where a database is."""

    def twin(self) -> Gate:
        return self

    async def close(self) -> None: ...


class GateSession:
    """What somebody does in a transaction of his own happens when it is sealed, all at once."""

    def __init__(self, operate: Callable[[Kind, Work[Any], bool], Awaitable[Any]]) -> None:
        self.connection = None
        self._operate = operate
        self._said: list[str] = []

    async def execute(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Without values: the databases write them differently."""
        self._said.append(sql)
        return []

    async def within(self, work: Work[T]) -> T:
        async def transaction(tx: Tx) -> T:
            for sql in self._said:
                await tx.script(sql)
            return await work(tx)

        answer: T = await self._operate("transact", transaction, False)
        return answer


def operation(work: Work[Any]) -> str:
    """The store's operation that a transaction's body was written in: `Store.claim`, `ScheduleStore.pause`."""
    name = getattr(work, "__qualname__", None) or getattr(getattr(work, "func", None), "__qualname__", "?")
    return str(name).partition(".<locals>")[0]
