"""Actors: one operation each, on a connection of its own, that rests before every statement and before every commit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import asyncpg
import msgspec

from rota.errors import RotaError
from rota.store.databases.database import Row, Work
from rota.store.databases.postgres.postgres import Connection, PostgresDatabase, PostgresTx, Statements
from rota.store.databases.statements import Statement
from rota.values.clock import Clock
from tests.explorer.footprints import Footprint, footprint_of

if TYPE_CHECKING:
    from tests.explorer.play import Play

_PATIENCE = timedelta(minutes=10)


class Standing(Enum):
    AT_STEP = auto()
    """It rests before its next step."""
    UNDER_WAY = auto()
    """Its step is being executed, or waits for a lock."""
    DONE = auto()


class Step(msgspec.Struct, frozen=True):
    """A statement, or the end of a transaction."""

    name: str
    footprint: Footprint


class Actor:
    """One party of a play. `name` is a letter, and part of the ids that it makes: who makes what does not depend on the
    order of steps.
    """

    def __init__(self, name: str, url: str, clock: Clock) -> None:
        self.name = name
        self.database = SteppedDatabase(url, clock, self)
        self.standing = Standing.DONE
        self.step: Step | None = None
        self.within = False
        """Whether it has made a step of a transaction that has not ended."""
        self.blocked_by: list[int] = []
        self.victim = False
        self.woken: list[frozenset[str | None]] = []
        self.wrote = Footprint()
        self.answer: object = None
        self._play: Play | None = None
        self._go = asyncio.Event()
        self._ids = 0

    def new_id(self) -> str:
        """Return an id that is younger than those of the scene, and the same in every play."""
        self._ids += 1
        return f"01990000-0000-7000-8000-{ord(self.name):02x}{self._ids:010x}"

    def begin(self, play: Play, act: Callable[[], Coroutine[Any, Any, object]]) -> asyncio.Task[None]:
        self._play, self._ids, self.woken, self.step, self.answer = play, 0, [], None, None
        self.within = self.victim = False
        self.blocked_by = []
        self.standing = Standing.UNDER_WAY
        self._go.clear()
        return asyncio.create_task(self._act(act))

    async def _act(self, act: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            self.answer = await act()
        except RotaError as error:
            self.answer = error
        finally:
            self.standing = Standing.DONE
            self.step = None
            self._tell()

    async def rest(self, step: Step) -> None:
        """Stand before this step until the play says to go on."""
        self.step = step
        self.standing = Standing.AT_STEP
        self._tell()
        await self._go.wait()
        self._go.clear()

    def go(self) -> None:
        self.standing = Standing.UNDER_WAY
        self._go.set()

    def _tell(self) -> None:
        if self._play is not None:
            self._play.moved.set()


class SteppedTx(PostgresTx):
    """A transaction that rests before each of its statements."""

    def __init__(self, connection: Connection, statements: Statements, actor: Actor, *, single: bool) -> None:
        super().__init__(connection, statements)
        self._actor = actor
        self._single = single
        self.footprint = Footprint()

    async def _run(self, statement: Statement, values: dict[str, object]) -> Sequence[Any]:
        footprint = footprint_of(statement.sql)
        self.footprint |= footprint
        name = statement.name if statement.name != "composed" else " ".join(statement.sql.split())[:60]
        ended = footprint | footprint.ended() if self._single else footprint
        await self._actor.rest(Step(name, ended))
        self._actor.within = not self._single
        try:
            return await super()._run(statement, values)
        except asyncpg.QueryCanceledError as error:
            if not self._actor.victim:
                raise
            self._actor.victim = False
            raise asyncpg.DeadlockDetectedError("deadlock detected") from error

    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        footprint = Footprint(locks=frozenset({table}), writes=frozenset({table}))
        self.footprint |= footprint
        await self._actor.rest(Step(f"copy {table}", footprint))
        await super().copy(table, columns, rows)


class SteppedDatabase(PostgresDatabase):
    """One connection, whose statements and commits are steps. Hints are noted and not sent."""

    def __init__(self, url: str, clock: Clock, actor: Actor) -> None:
        super().__init__(url, clock, deadline=_PATIENCE, size=1)
        self._actor = actor
        self._stuck = None  # a statement may rest for as long as the play likes
        self.pid = 0

    async def connect(self) -> Connection:
        connection = await super().connect()
        # A deadlock is found by the play itself, and at once.
        await connection.execute("set deadlock_timeout = '1h'; set client_min_messages = error")
        self.pid = connection.get_server_pid()
        return connection

    async def ready(self) -> None:
        async with self._connection():
            pass

    def notify(self, queues: Iterable[str | None]) -> None:
        self._actor.woken.append(frozenset(queues))

    async def _transaction(
        self, connection: Connection, settings: str | None, work: Work[Any], unsure: set[str | None]
    ) -> Any:
        tx = SteppedTx(connection, self._statements, self._actor, single=settings is None)
        result = await self._stepped(tx, connection, settings, work)
        self._tell(tx.woken | unsure)
        return result

    async def _stepped(self, tx: SteppedTx, connection: Connection, settings: str | None, work: Work[Any]) -> Any:
        if settings is None:
            return await work(tx)
        try:
            await connection.execute(f"begin; {settings}")
            try:
                result = await work(tx)
            except (RotaError, asyncpg.PostgresError):
                await self._end(tx, connection, "rollback", Footprint(releases=tx.footprint.locks))
                raise
            await self._end(tx, connection, "commit", tx.footprint.ended())
            return result
        finally:
            self._actor.within = False

    async def _end(self, tx: SteppedTx, connection: Connection, how: str, footprint: Footprint) -> None:
        if tx.footprint.locks:  # else nobody can tell when it ended
            await self._actor.rest(Step(how, footprint))
        await connection.execute(how)


@contextlib.asynccontextmanager
async def actors_on(url: str, clock: Clock, count: int) -> Any:
    """Make so many actors, and close their connections afterwards."""
    actors = [Actor(letter, url, clock) for letter in "ABC"[:count]]
    try:
        for actor in actors:
            await actor.database.ready()
        yield actors
    finally:
        for actor in actors:
            await actor.database.close()
