"""The two real databases, an operation at a time: the world stands still while one is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, Literal, Protocol, TypeVar, cast

import apsw
import asyncpg

from rota.errors import Invalid
from rota.store import Store, new_id
from rota.store.databases.database import Hint, Row, Session, Work, drive
from rota.store.databases.epoch import LAST, Epoch, Standing, following
from rota.store.databases.postgres.place import place_of
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.store.databases.sqlite.connection_thread import Job, read_each, translated, write_group
from rota.store.databases.sqlite.sqlite import SqliteTx
from rota.store.databases.statements import POSTGRES, SQLITE, Dialect
from rota.values.clock import Clock, HostClock

T = TypeVar("T")
Kind = Literal["transact", "alone", "glance", "read"]
_LIMIT = 60.0
_EFFECTS = """
create table if not exists proof_effect (run_id text not null, fence integer not null, finishing integer not null)
"""
"""What handlers do in transactions of their own."""
_NEXT_NUMBER = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_COLUMNS = """
select c.relname, string_agg(a.attname, ', ' order by a.attnum)
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' group by c.relname
"""
_DEADLINE = timedelta(seconds=30)


class Backend(Protocol):
    dialect: Dialect

    def begin(self, clock: Clock) -> None:
        """Empty, migrated, under this clock."""

    def do(self, kind: Kind, work: Work[T], *, repeatable: bool = True) -> T: ...

    def changed(self) -> bool:
        """Whether any row may have been written since this was last asked."""

    def look(self, sql: str) -> Sequence[Row]:
        """A question of the observer's."""

    def mark(self) -> None:
        """Remember all rows."""

    def lose(self) -> None:
        """Go back to the last mark."""

    def move(self) -> None:
        """Begin the epoch that rota would after a failover or a restore."""

    def close(self) -> None: ...


class WorldsClock:
    """The one of the world that the database is in at present: worlds come and go, what is prepared stays."""

    def __init__(self) -> None:
        self.current: Clock = HostClock()

    def micros(self) -> int:
        return self.current.micros()

    def monotonic(self) -> float:
        return self.current.monotonic()


class _Answer:
    """A future as far as a group commit needs one: whoever waits for it is this thread, and there already."""

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._result: Any = None
        self._done = False

    def done(self) -> bool:
        return self._done

    def running(self) -> bool:
        return not self._done

    def set_running_or_notify_cancel(self) -> bool:
        return True

    def set_result(self, result: Any) -> None:
        self._result, self._done = result, True

    def set_exception(self, error: BaseException) -> None:
        self._error, self._done = error, True

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class SqliteBackend:
    """In memory, on this thread, through the same group commit as in production."""

    dialect = SQLITE

    def __init__(self) -> None:
        self._own = apsw.Connection(":memory:", statementcachesize=500)
        self._own.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # as in production, and three times as fast
        self._own.execute("pragma foreign_keys = on; pragma temp_store = memory").fetchall()
        self._changes = 0
        self._marked = b""
        self._clock = WorldsClock()
        self._tx = SqliteTx(self._own, self._clock)
        drive(Direct(self, HostClock()).store().migrate())
        self._own.execute(_EFFECTS).fetchall()
        tables = self.look("select name from sqlite_master where type = 'table' and name <> 'rota_migration'")
        self._clear = ";".join(f"delete from {name}" for (name,) in tables)

    def begin(self, clock: Clock) -> None:
        self._own.execute(self._clear).fetchall()
        self._clock.current = clock

    def do(self, kind: Kind, work: Work[T], *, repeatable: bool = True) -> T:
        answer = _Answer()
        try:
            job = Job(work, cast("Future[Any]", answer))
            (write_group if kind in ("transact", "alone") else read_each)(self._tx, [job])
            result: T = answer.result()
        except apsw.Error as error:
            raise translated(error, "the database") from error
        except (UnicodeError, OverflowError) as error:
            raise Invalid(f"a value cannot be stored: {error}") from error
        return result

    def changed(self) -> bool:
        before, self._changes = self._changes, self._own.total_changes()
        return self._changes != before

    def look(self, sql: str) -> Sequence[Row]:
        return self._own.execute(sql).fetchall()

    def mark(self) -> None:
        self._marked = self._own.serialize("main")

    def lose(self) -> None:
        self._own.deserialize("main", self._marked)

    def move(self) -> None:
        row = self._own.execute(LAST).fetchone()
        now = self._clock.micros()
        begun = following(Epoch(row[0], "elsewhere", row[2]) if row else None, "here", now)
        assert begun is not None
        self._own.execute("insert into rota_epoch (epoch, place, floor, since) values (?, ?, ?, ?)", (*begun, now))

    def close(self) -> None:
        self._own.close()


class _Silent(PostgresDatabase):
    def notify(self, queues: Iterable[str | None]) -> None:
        """Nothing: hints travel through the world's own gates."""


class PostgresBackend:
    """A server's database, through the same client as in production, on an event loop of its own."""

    dialect = POSTGRES

    def __init__(self, url: str) -> None:
        self._url = f"{url}{'&' if '?' in url else '?'}synchronous_commit=off"  # nobody cuts its power
        self._loop = asyncio.new_event_loop()
        self._clock = WorldsClock()
        self._eyes: asyncpg.Connection[asyncpg.Record] = self._wait(asyncpg.connect(self._url, command_timeout=_LIMIT))
        self._commits = 0
        self._marked: list[str] = []
        self._wait(self._migrate())
        self._wait(self._eyes.execute(_EFFECTS))
        rows = self._wait(self._eyes.fetch("select tablename from pg_tables where tablename like 'rota_%'"))
        tables = ["proof_effect", *sorted(row[0] for row in rows if row[0] != "rota_migration")]
        self._filled = " union all ".join(f"select '{name}' where exists (select 1 from {name})" for name in tables)
        self._database = self._wait(self._open())

    async def _migrate(self) -> None:
        store = Store(PostgresDatabase(self._url, deadline=_DEADLINE))
        await store.migrate()
        await store.close()

    def _wait(self, body: Coroutine[Any, Any, T]) -> T:
        """On this thread, which is cheaper than another one: meanwhile the world's own event loop does not run."""
        world = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            return self._loop.run_until_complete(body)
        finally:
            asyncio._set_running_loop(world)

    def begin(self, clock: Clock) -> None:
        filled = [row[0] for row in self._wait(self._eyes.fetch(self._filled))]
        if filled:  # to empty an empty table takes as long as a full one
            self._wait(self._eyes.execute(f"truncate {', '.join(filled)}"))
        self._clock.current = clock

    async def _open(self) -> PostgresDatabase:
        return _Silent(self._url, self._clock, deadline=_DEADLINE)

    def do(self, kind: Kind, work: Work[T], *, repeatable: bool = True) -> T:
        database = self._database
        if kind == "transact":
            return self._wait(database.transact(work, repeatable=repeatable))
        door = {"alone": database.alone, "glance": database.glance, "read": database.read}[kind]
        return self._wait(door(work))

    def changed(self) -> bool:
        """Whoever writes has a number, or whoever locks a row: most operations find nothing to do, and have none."""
        before, self._commits = self._commits, self._wait(self._eyes.fetchval(_NEXT_NUMBER))
        return self._commits != before

    def look(self, sql: str) -> Sequence[Row]:
        return [tuple(row) for row in self._wait(self._eyes.fetch(sql))]

    def mark(self) -> None:
        filled = [row[0] for row in self._wait(self._eyes.fetch(self._filled))]
        copies = " ".join(f"create table marked.{name} as table public.{name};" for name in filled)
        self._marked = filled
        self._wait(self._eyes.execute(f"drop schema if exists marked cascade; create schema marked; {copies}"))

    def lose(self) -> None:
        filled = [row[0] for row in self._wait(self._eyes.fetch(self._filled))]
        columns = {str(name): str(names) for name, names in self._wait(self._eyes.fetch(_COLUMNS))}
        back = " ".join(
            f"insert into {name} ({columns[name]}) overriding system value select {columns[name]} from marked.{name};"
            for name in self._marked
        )
        emptied = f"truncate {', '.join(filled)};" if filled else ""
        # Without triggers: what they wrote is put back, too.
        self._wait(self._eyes.execute(f"begin; set local session_replication_role = replica; {emptied} {back} commit"))

    def move(self) -> None:
        place = self._wait(place_of(self._eyes))  # where its connections are: they begin no epoch of their own
        assert place is not None
        row = self._wait(self._eyes.fetchrow(LAST))
        now = self._clock.micros()
        begun = following(Epoch(row[0], "elsewhere", row[2]) if row else None, place, now)
        assert begun is not None
        sql = "insert into rota_epoch (epoch, place, floor, since) values ($1, $2, $3, $4)"
        self._wait(self._eyes.execute(sql, *begun, now))

    def close(self) -> None:
        self._wait(self._database.close())
        self._wait(self._eyes.close())
        self._loop.close()


def open_backend(url: str | None) -> Backend:
    """None: SQLite in memory. Otherwise a PostgreSQL database that may be emptied."""
    return SqliteBackend() if url is None else PostgresBackend(url)


class Direct:
    """A database without anything between it and the caller; what asks it never waits, and may be driven by hand."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self.dialect = backend.dialect
        self.clock = clock
        self.polls = True
        self.standing = Standing()
        self.hears = False
        self._backend = backend

    def store(self, new_id: Callable[[], str] = new_id) -> Store:
        return Store(self, new_id)

    async def transact(
        self, work: Work[T], *, repeatable: bool = True, deadline: timedelta | None = None, acts: bool = False
    ) -> T:
        return self._backend.do("transact", work)

    async def alone(self, work: Work[T]) -> T:
        return self._backend.do("alone", work)

    async def glance(self, work: Work[T]) -> T:
        return self._backend.do("glance", work)

    async def read(self, work: Work[T]) -> T:
        return self._backend.do("read", work)

    async def heed(self, work: Work[T]) -> T:
        return await self.read(work)

    async def foresee(self, work: Work[Any]) -> None:
        self._backend.do("read", work)

    def session(self) -> AbstractAsyncContextManager[Session]:
        raise NotImplementedError

    def version(self) -> object | None:
        return None

    def notify(self, queues: Iterable[str | None]) -> None: ...

    def listen(self, hint: Hint) -> Callable[[], None]:
        return lambda: None

    async def renew(self) -> None:
        """Do nothing: nothing here depends on where a database is."""

    def twin(self) -> Direct:
        return self

    async def close(self) -> None: ...
