"""Measure what an operation costs, by counts, which are the same on every machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import asyncpg
import msgspec

from rota.store import Store
from rota.store.databases.database import Database
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.store.databases.sqlite import sqlite
from rota.store.databases.sqlite.sqlite import SqliteTx
from tests.support.databases import deep_queues
from tests.support.databases.deep_queues import Reading
from tests.support.databases.transactions import counted
from tests.support.profile import Profile

_AROUND = ("begin", "commit", "rollback")  # a reader's commit comes after its answer, sometime
_STEPS, _SCANNED = "SQLITE_STMTSTATUS_VM_STEP", "SQLITE_STMTSTATUS_FULLSCAN_STEP"


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What one operation costs.

    `statements` are those within transactions; on SQLite each row of an `executemany` is one. `calls` are Python calls
    within rota. `read` is what had to be looked at: on PostgreSQL rows and index entries, on SQLite steps of its
    virtual machine. `trips` to the server and back, `pages`, `wal` (bytes) and `dead` (versions of rows that are left
    for vacuum) are PostgreSQL's; `scanned` is SQLite's count of rows that it went through without an index.
    """

    transactions: int
    statements: int
    calls: int
    read: int
    trips: int = 0
    pages: int = 0
    wal: int = 0
    dead: int = 0
    scanned: int = 0


class _Executed:
    """Statements that were executed, with SQLite's own counts of their work."""

    def __init__(self) -> None:
        self.statements = 0
        self.trips = 0
        self.steps = 0
        self.scanned = 0

    def note_sqlite(self, event: dict[str, Any]) -> None:
        if event["sql"].startswith(_AROUND):
            return
        self.statements += 1
        self.steps += event["stmt_status"][_STEPS]
        self.scanned += event["stmt_status"][_SCANNED]

    def note_postgres(self, record: Any) -> None:
        self.trips += 1
        self.statements += not record.query.startswith(_AROUND)


class Meter:
    """Measures operations of one store. It must exist before the store's first connection is opened."""

    def __init__(self, profile: Profile, patch: Any) -> None:
        self._profile = profile
        self._executed = _Executed()
        self._count_sqlite(patch)
        self._count_postgres(patch)

    def _count_sqlite(self, patch: Any) -> None:
        start = SqliteTx.__init__

        def traced(tx: SqliteTx, connection: apsw.Connection, *rest: Any) -> None:
            start(tx, connection, *rest)
            connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._executed.note_sqlite, id="costs")

        patch.setattr(sqlite.SqliteTx, "__init__", traced)

    def _count_postgres(self, patch: Any) -> None:
        connect = asyncpg.connect

        async def logged(*positional: Any, **named: Any) -> asyncpg.Connection[Any]:
            connection: asyncpg.Connection[Any] = await connect(*positional, **named)
            connection.add_query_logger(self._executed.note_postgres)
            return connection

        patch.setattr(asyncpg, "connect", logged)

    async def measure(
        self, store: Store, operation: Callable[[], Awaitable[object]], *, vacuum: bool = True
    ) -> tuple[Cost, Reading | None]:
        """Return what the operation costs, and which tables PostgreSQL read. Nobody else may use the store meanwhile.

        `vacuum`: PostgreSQL's statistics are fresh, and it has no dead rows.
        """
        database = store.database
        if not isinstance(database, PostgresDatabase):
            return await self._counts(database, operation), None
        if vacuum:
            await deep_queues.execute(database.url, "vacuum analyze")
        before = await _wal(database)
        cost: list[Cost] = []

        async def counts() -> None:
            cost.append(await self._counts(database, operation))

        reading = await deep_queues.reading(store, counts)
        written = await _wal(database) - before
        facts = {"read": reading.total, "pages": reading.pages, "wal": written, "dead": reading.dead}
        return msgspec.structs.replace(cost[0], **facts), reading

    async def _counts(self, database: Database, operation: Callable[[], Awaitable[object]]) -> Cost:
        executed = self._executed
        executed.__init__()  # type: ignore[misc]  # the connections hold this object
        with counted(database) as transactions, self._profile.walk() as walk:
            await operation()
        return Cost(
            transactions=len(transactions),
            statements=executed.statements,
            calls=walk.calls,
            read=executed.steps,
            trips=executed.trips,
            scanned=executed.scanned,
        )


async def _wal(database: PostgresDatabase) -> int:
    """Return how many bytes the server's log has had so far."""
    connection = await database.connect()
    try:
        return int(await connection.fetchval("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"))
    finally:
        await connection.close()


@contextmanager
def meter(patch: Any) -> Iterator[Meter]:
    """Return a meter for stores that are opened within this block."""
    with Profile() as profile:
        yield Meter(profile, patch)
