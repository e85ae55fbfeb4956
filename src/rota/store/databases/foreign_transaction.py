"""rota's own enqueue inside somebody else's transaction, for runs that need its locks: keys, dependencies, replicas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rota.core.runs.run import Enqueued, NewRun
from rota.errors import Invalid
from rota.store.databases.database import Tx, drive
from rota.store.databases.statements import POSTGRES, Dialect
from rota.store.runs.enqueue import enqueue
from rota.values.clock import HostClock

if TYPE_CHECKING:
    from rota.store.databases.postgres.postgres import Connection

T = TypeVar("T")
_READ_COMMITTED = "read committed"
_TELL = "select pg_notify('rota', $1::text)"
_DRIVERS = "psycopg 3, also through SQLAlchemy or Django; asyncpg; apsw on SQLite"


def enqueue_all_in(connection: Any, runs: Sequence[NewRun], dialect: Dialect) -> list[Enqueued]:
    """Enqueue on a synchronous connection."""
    on_postgres = dialect is POSTGRES
    body = _on_postgres(_Psycopg(_driver_of(connection)), runs) if on_postgres else _on_sqlite(connection, runs)
    answers: list[Enqueued] = drive(body)
    return answers


async def aenqueue_all_in(connection: Any, runs: Sequence[NewRun], dialect: Dialect) -> list[Enqueued]:
    """Enqueue on an asynchronous connection."""
    if dialect is not POSTGRES:
        raise _unsuitable(connection)
    driver = await _async_driver_of(connection)
    if type(driver).__module__.startswith("asyncpg"):
        return await _on_postgres(driver, runs)
    return await _on_postgres(_AsyncPsycopg(driver), runs)


def _unsuitable(connection: object) -> Invalid:
    name = f"{type(connection).__module__.partition('.')[0]}'s {type(connection).__qualname__}"
    return Invalid(
        f"a run with keys, dependencies, requirements, parts or deciding limits cannot be enqueued through {name}",
        hint=f"this takes {_DRIVERS}; or enqueue it after your commit",
    )


async def _on_sqlite(connection: Any, runs: Sequence[NewRun]) -> list[Enqueued]:
    import apsw

    from rota.store.databases.sqlite.sqlite import SqliteTx

    if not isinstance(connection, apsw.Connection):
        raise _unsuitable(connection)
    if not connection.in_transaction:
        raise _no_transaction()
    tx = SqliteTx(connection, HostClock())
    # Whatever rows the connection makes for its owner. Nobody else uses it meanwhile: this never suspends.
    row_trace, connection.row_trace = connection.row_trace, None
    try:
        return await _guarded(tx, lambda: enqueue(tx, runs))
    finally:
        connection.row_trace = row_trace


async def _on_postgres(connection: Any, runs: Sequence[NewRun]) -> list[Enqueued]:
    from rota.store.databases.postgres.postgres import PostgresTx, Statements

    tx = PostgresTx(cast("Connection", connection), Statements(None))
    await _require_read_committed(connection)
    answers = await _guarded(tx, lambda: enqueue(tx, runs))
    for queue in sorted({queue or "" for queue in tx.woken}):
        await connection.fetch(_TELL, queue)  # heard when its owner commits
    return answers


async def _require_read_committed(connection: Any) -> None:
    # Under a snapshot, who waited for a lock would still see what was there before.
    ((isolation,),) = await connection.fetch("select current_setting('transaction_isolation')")
    if isolation != _READ_COMMITTED:
        raise Invalid(
            f"such a run cannot be enqueued inside a transaction that is {isolation}",
            hint="what its key or its predecessor is must be read after its lock: enqueue it after your commit",
        )


async def _guarded(tx: Tx, act: Callable[[], Awaitable[T]]) -> T:
    """Undo all of it if it is refused: the transaction is its owner's, and goes on."""
    await tx.script("savepoint rota_enqueue")
    try:
        answer = await act()
    except BaseException:
        await tx.script("rollback to savepoint rota_enqueue")
        await tx.script("release savepoint rota_enqueue")
        raise
    await tx.script("release savepoint rota_enqueue")
    return answer


def _no_transaction() -> Invalid:
    return Invalid("there is no transaction to enqueue in", hint="begin one before: `with connection:`, or `begin`")


def _driver_of(connection: Any) -> Any:
    """Return psycopg's connection behind SQLAlchemy's, or Django's."""
    module = type(connection).__module__.partition(".")[0]
    if module == "sqlalchemy":
        own = connection.connection() if callable(connection.connection) else connection
        if not own.in_transaction():
            own.begin()
        connection = own.connection.driver_connection
    elif hasattr(connection, "in_atomic_block"):
        connection = connection.connection
    import psycopg

    if not isinstance(connection, psycopg.Connection):
        raise _unsuitable(connection)
    if connection.autocommit and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        raise _no_transaction()
    return connection


async def _async_driver_of(connection: Any) -> Any:
    """Return the connection of asyncpg or psycopg behind SQLAlchemy's."""
    module = type(connection).__module__.partition(".")[0]
    if module == "sqlalchemy":
        from sqlalchemy import text

        await connection.execute(text("select 1"))  # its transaction begins with the first statement
        # A session has a connection; a connection raises at that name.
        own = connection if hasattr(connection, "get_raw_connection") else await connection.connection()
        connection = (await own.get_raw_connection()).driver_connection
        module = type(connection).__module__.partition(".")[0]
    if module == "asyncpg":
        if not connection.is_in_transaction():
            raise _no_transaction()
        return connection
    import psycopg

    if not isinstance(connection, psycopg.AsyncConnection):
        raise _unsuitable(connection)
    if connection.autocommit and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        raise _no_transaction()
    return connection


class _Psycopg:
    """A connection of psycopg as `PostgresTx` uses one of asyncpg. It never suspends."""

    def __init__(self, connection: Any) -> None:
        from psycopg import RawCursor
        from psycopg.rows import tuple_row

        self._cursor = RawCursor(connection, row_factory=tuple_row)

    async def fetch(self, sql: str, *values: object) -> list[Any]:
        self._cursor.execute(sql.encode(), [_plain(value) for value in values])
        return self._cursor.fetchall() if self._cursor.description else []

    async def execute(self, sql: str) -> None:
        self._cursor.execute(sql.encode())


class _AsyncPsycopg:
    def __init__(self, connection: Any) -> None:
        from psycopg import AsyncRawCursor
        from psycopg.rows import tuple_row

        self._cursor = AsyncRawCursor(connection, row_factory=tuple_row)

    async def fetch(self, sql: str, *values: object) -> list[Any]:
        await self._cursor.execute(sql.encode(), [_plain(value) for value in values])
        return await self._cursor.fetchall() if self._cursor.description else []

    async def execute(self, sql: str) -> None:
        await self._cursor.execute(sql.encode())


def _plain(value: object) -> object:
    """psycopg takes a tuple for a row, and a list for an array."""
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str | bytes) else value
