"""PostgreSQL: a small pool, pinned plans, a deadline on every call, coalesced notifications."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from rota.errors import BadConfig, Conflict, DatabaseCopied, DeadlineExceeded, Invalid, RotaError, Unavailable
from rota.store.databases.columns import Column, Columns
from rota.store.databases.database import Hint, HotForms, Row, Work
from rota.store.databases.epoch import Standing
from rota.store.databases.pinned_plans import PINNED, WALKING
from rota.store.databases.postgres.notify import Listener, Notifier
from rota.store.databases.postgres.place import GREETING, MISPLACED, enter, place_of, require_original
from rota.store.databases.postgres.postgres_hot import PostgresHotForms
from rota.store.databases.postgres.shared_pool import SharedPool
from rota.store.databases.postgres.stuck_connections import StuckConnections
from rota.store.databases.statements import POSTGRES, Statement, compile_sql, compile_statement
from rota.values.clock import Clock, HostClock, compare, id_clock

T = TypeVar("T")

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_CONNECT = 5.0
_TRIES = 4
# Per connection: enough for those that are used often, each of which costs the server memory.
_STATEMENTS = 200
# At once. Each may stay open for as long as a handler works in it.
_SESSIONS = 16
# A hint is not worth waiting for the disk.
_NOTIFY = """
select set_config('synchronous_commit', 'off', true), pg_notify('rota', queue) from unnest($1::text[]) as queue
"""
_READING = f"set transaction read only; {WALKING}"
_BROKEN = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.AdminShutdownError,
    asyncpg.InternalClientError,  # the server has said goodbye, and the connection was used before it was closed
    ConnectionError,
)
# The server has rolled back: repeating is safe whatever the transaction does. After a key that another transaction took
# while this one waited for it, a repetition sees who has it.
_RETRIED: tuple[type[Exception], ...] = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.UniqueViolationError,
)


class PostgresTx:
    dialect = POSTGRES

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self.hot: HotForms = PostgresHotForms(self)
        self.woken: set[str | None] = set()
        self._connection = connection
        self._statements = statements

    def wake(self, *queues: str | None) -> None:
        self.woken.update(queues)

    async def fetch(self, statement: str, rows: Sequence[Row] | None = None, /, **values: object) -> Sequence[Row]:
        compiled = self._statements.named(statement)
        if rows is not None:
            columns = Columns.of(rows).columns if rows else [()] * len(compiled.columns)
            whole = columns[0] if len(columns[0]) == len(rows) else [*columns[0]] * len(rows)
            arrays = [whole, *map(_array, columns[1:])]
            values.update(zip(compiled.columns, arrays, strict=True))
        return await self._run(compiled, values)

    async def fetch_sql(self, sql: str, /, **values: object) -> Sequence[Row]:
        statement = compile_sql("composed", sql, POSTGRES, manual_clock=self._statements.manual_clock is not None)
        return await self._run(statement, values)

    async def _run(self, statement: Statement, values: dict[str, object]) -> Sequence[Any]:
        if self._statements.manual_clock:
            values["now"] = self._statements.manual_clock.micros()
        return await self._connection.fetch(statement.sql, *[values[name] for name in statement.parameters])

    async def script(self, sql: str) -> None:
        await self._connection.execute(sql)

    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Many rows at once, without a statement for each."""
        await self._connection.copy_records_to_table(table, records=rows, columns=columns)


def _array(column: Column) -> Column:
    """Send once what all rows have in common; `unnest` pads the array with nulls, which the statement fills."""
    return () if len(column) == 1 and column[0] is None else column


class PostgresSession:
    def __init__(self, connection: Connection, statements: Statements) -> None:
        self.connection = connection
        self.woken: set[str | None] = set()
        self._statements = statements

    async def execute(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.connection.fetch(sql, *values)]

    async def within(self, work: Work[T]) -> T:
        if not self.connection.is_in_transaction():
            raise Conflict("the transaction was ended inside its block", hint="leave that to the block")
        await self.connection.execute(PINNED)  # from here on: what comes before is not ours
        tx = PostgresTx(self.connection, self._statements)
        result = await work(tx)
        self.woken |= tx.woken
        return result


class Statements:
    """Compiled once per process and database; with a manual clock its time is bound instead of the server's."""

    def __init__(self, manual_clock: Clock | None) -> None:
        self.manual_clock = manual_clock
        self._compiled: dict[str, Statement] = {}

    def named(self, name: str) -> Statement:
        statement = self._compiled.get(name)
        if statement is None:
            statement = compile_statement(name, POSTGRES, manual_clock=self.manual_clock is not None)
            self._compiled[name] = statement
        return statement


class PostgresDatabase:
    dialect = POSTGRES

    def __init__(
        self,
        url: str,
        manual_clock: Clock | None = None,
        *,
        deadline: timedelta,
        size: int = 8,
        standing: Standing | None = None,
        shared: SharedPool | None = None,
    ) -> None:
        self.url = url
        self.deadline = deadline
        self.standing = standing or Standing()
        self._dsn, self._pooled = without_pooler(url)
        self.polls = self._pooled
        self.clock = manual_clock or HostClock()  # for measuring only: the server's clock decides
        self._manual_clock = manual_clock
        self._statements = Statements(manual_clock)
        self._shared = shared
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(size)
        self._closed = False
        self._notifier = Notifier(self._send_notification)
        self._listener: Listener | None = None
        self._session_pool: PostgresDatabase | None = None
        # A pooler's server processes serve others, too: their state says nothing about a call of ours.
        self._stuck = None if self._pooled else StuckConnections(self.connect)

    async def connect(self) -> Connection:
        limit = self.deadline.total_seconds()
        try:
            connection = await asyncpg.connect(
                self._dsn,
                timeout=min(_CONNECT, limit),
                command_timeout=limit,
                # Never expires: a generic plan stays right, and planning again would cost more than the statement.
                max_cached_statement_lifetime=0,
                # Behind a pooler the next transaction may be on a server connection that does not know the statement.
                statement_cache_size=0 if self._pooled else _STATEMENTS,
            )
            await self._greet(connection)
            return connection
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, ValueError) as error:
            raise translated(error, self.deadline) from error

    async def _greet(self, connection: Connection) -> None:
        """Learn the server's time and place before anything else is done: ids and fences depend on them.

        Once for a connection, because neither its server nor that server's history can change while it lives. Behind a
        pooler it can: there, a transaction may be in a new epoch that no connection has noticed yet.
        """
        before = id_clock()
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(connection.terminate)
            async with connection.transaction():  # a pooler gives one server for all statements of it
                ((now, standby, has_epochs),) = await connection.fetch(GREETING)
            compare(self.clock, before, now)
            if standby:
                raise Unavailable(
                    "PostgreSQL is a standby, which cannot be written to",
                    hint="name all servers in the URL: postgresql://first,second/rota?target_session_attrs=read-write",
                )
            if has_epochs:
                await self._compare_places(connection, now)
            stack.pop_all()

    async def _compare_places(self, connection: Connection, now: int) -> None:
        place = await place_of(connection)
        if place is not None and place != self.standing.place:
            await enter(connection, self.standing, place, now)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """A connection that fails in any way is thrown away: nobody can know what state it is in."""
        # One is reserved before it is looked for: there are never more connections than places.
        async with self._free:
            shared = self._shared
            connection = await shared.acquire(self.connect) if shared else self._pop_idle() or await self.connect()
            try:
                # Moved: a heartbeat has seen it, and connections to a pooler, or to a restored one, stay.
                if self.standing.moved or (shared and shared.is_new(connection)):
                    await self._greet(connection)
                yield connection
            except BaseException as error:
                expected = isinstance(error, RotaError | asyncpg.PostgresError)
                if not expected or _in_doubt(connection):
                    with contextlib.suppress(asyncpg.InterfaceError):
                        connection.terminate()
                raise
            finally:
                if shared:
                    await shared.release(connection)
                elif not connection.is_closed():
                    if self._closed:
                        connection.terminate()
                    else:
                        self._idle.append(connection)

    async def renew(self) -> None:
        if self._shared:
            self._shared.forget()
        while connection := self._pop_idle():
            connection.terminate()

    def _pop_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    async def transact(
        self, work: Work[T], *, repeatable: bool = True, deadline: timedelta | None = None, acts: bool = False
    ) -> T:
        if deadline is not None:
            return await self._with_deadline(work, repeatable, deadline)
        return await self._within(PINNED, work, repeatable=repeatable, acts=acts)

    async def _with_deadline(self, work: Work[T], repeatable: bool, deadline: timedelta) -> T:
        """Run it on a connection of its own: each of the others has the usual deadline built in."""
        patient = PostgresDatabase(self.url, self._manual_clock, deadline=deadline, size=1, standing=self.standing)
        try:
            return await patient.transact(work, repeatable=repeatable)
        finally:
            await patient.close()

    async def alone(self, work: Work[T]) -> T:
        # Behind a pooler, only a transaction keeps a statement and its execution on one server connection.
        return await self._within(PINNED if self._pooled else None, work)

    async def glance(self, work: Work[T]) -> T:
        return await self._within(_READING if self._pooled else None, work)

    async def read(self, work: Work[T]) -> T:
        return await self._within(_READING, work)

    @property
    def hears(self) -> bool:
        return self._listener is not None and self._listener.is_connected

    async def heed(self, work: Work[T]) -> T:
        listener = self._listener
        if listener is None or not listener.is_connected:
            return await self.read(work)
        try:
            return await listener.ask(lambda connection: self._asked(connection, work))
        except (asyncpg.PostgresError, *_BROKEN, OSError, TimeoutError) as error:
            raise translated(error, self.deadline) from error

    async def _asked(self, connection: Connection, work: Work[T]) -> T:
        return await self._committed(PostgresTx(connection, self._statements), connection, _READING, work)

    async def foresee(self, work: Work[Any]) -> None:
        """The server has it at hand for all its connections."""

    async def _within(self, settings: str | None, work: Work[T], *, repeatable: bool = True, acts: bool = False) -> T:
        # After a broken connection nobody knows whether the commit arrived: only what may happen twice is repeated.
        again = _RETRIED + (_BROKEN if repeatable else ())
        unsure: set[str | None] = set()  # whom tries woke that may have committed before their connection broke
        for tries_left in reversed(range(_TRIES)):
            try:
                # The deadline of one try; it covers the wait for a free connection, too.
                async with asyncio.timeout(self.deadline.total_seconds()), self._connection() as connection:
                    # Asked of the connection in use: the first one to a copy is the one that finds out.
                    if acts and self.standing.held:
                        await require_original(connection, self.standing)
                    return await self._watched(connection, settings, work, unsure)
            except TimeoutError as error:
                self._forget_idle()  # the others may be half-open, too: one deadline is enough to learn it
                raise DeadlineExceeded("a transaction", self.deadline.total_seconds()) from error
            except MISPLACED as error:
                self.standing.moved = True  # the next transaction looks where it is
                raise DatabaseCopied from error
            except (asyncpg.PostgresError, *_BROKEN, OSError, UnicodeError) as error:
                if isinstance(error, _BROKEN):
                    self._forget_idle()  # after a restart of the server they are all dead
                if not tries_left or not isinstance(error, again):
                    raise translated(error, self.deadline) from error
        raise AssertionError("unreachable")

    async def _watched(self, connection: Connection, settings: str | None, work: Work[T], unsure: set[str | None]) -> T:
        """Or the connection breaks, if nobody is at its other end."""
        if self._stuck is None:
            return await self._transaction(connection, settings, work, unsure)
        self._stuck.begin(connection)
        try:
            return await self._transaction(connection, settings, work, unsure)
        finally:
            self._stuck.end(connection)

    def _forget_idle(self) -> None:
        while connection := self._pop_idle():
            connection.terminate()

    def _limits(self) -> str:
        limit = int(self.deadline.total_seconds() * 1_000)
        # The second one is for a process that freezes in here: its locks must not outlast the deadline of others.
        return f"set local statement_timeout = {limit}; set local idle_in_transaction_session_timeout = {limit}"

    async def _transaction(
        self, connection: Connection, settings: str | None, work: Work[T], unsure: set[str | None]
    ) -> T:
        tx = PostgresTx(connection, self._statements)  # a new one for each try: it has woken nobody yet
        try:
            result = await self._committed(tx, connection, settings, work)
        except _BROKEN:
            # The commit may have arrived. A repetition then finds everything done and wakes nobody: whom this try woke
            # is told with it.
            unsure |= tx.woken
            raise
        self._tell(tx.woken | unsure)
        return result

    async def _committed(self, tx: PostgresTx, connection: Connection, settings: str | None, work: Work[T]) -> T:
        if settings is None:
            return await work(tx)
        # All in one round trip.
        await connection.execute(f"begin; {self._limits()}; {settings}")
        try:
            result = await work(tx)
        # After any other error the answer of a statement may still be on its way: `_connection` throws the connection
        # away.
        except (RotaError, asyncpg.PostgresError):
            await connection.execute("rollback")
            raise
        await connection.execute("commit")
        return result

    def _tell(self, woken: set[str | None]) -> None:
        """Notify after the commit only: who listens would not find the work before it."""
        if woken:
            self.notify(woken)

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[PostgresSession]:
        """Open a session on connections aside: whoever works in them may need one of ours before he is done."""
        if self._session_pool is None:
            self._session_pool = PostgresDatabase(
                self.url, self._manual_clock, deadline=self.deadline, size=_SESSIONS, standing=self.standing
            )
        async with self._session_pool._connection() as connection:
            begin = f"begin; {self._limits()}"
            await connection.execute(begin)
            session = PostgresSession(connection, self._statements)
            try:
                yield session
            except BaseException:
                try:
                    # Shielded: a second cancellation must not cut the rollback off.
                    await asyncio.shield(connection.execute("rollback"))
                except Exception:  # what went wrong before says more
                    connection.terminate()
                raise
            await connection.execute("commit")
            self._tell(session.woken)

    async def _send_notification(self, queues: list[str]) -> None:
        async with asyncio.timeout(self.deadline.total_seconds()), self._connection() as connection:
            await connection.execute(_NOTIFY, queues)

    def version(self) -> object | None:
        return None

    def notify(self, queues: Iterable[str | None]) -> None:
        self._notifier.tell(queues)

    def listen(self, hint: Hint) -> Callable[[], None]:
        if self._pooled:
            return lambda: None  # a pooler does not pass notifications on: work is found by polling
        if self._listener is None:
            self._listener = Listener(self.connect)
        return self._listener.add(hint)

    def twin(self) -> PostgresDatabase:
        # A pool of its own: a connection of asyncpg belongs to one event loop.
        return PostgresDatabase(self.url, self._manual_clock, deadline=self.deadline, size=2, standing=self.standing)

    async def close(self) -> None:
        self._closed = True
        if self._stuck:
            await self._stuck.close()
        if self._session_pool:
            await self._session_pool.close()
        # Before the idle connections are closed: the last hints need one.
        await self._notifier.flush()
        if self._listener:
            await self._listener.close()
        while connection := self._pop_idle():
            with contextlib.suppress(Exception):
                await connection.close(timeout=1)


def _in_doubt(connection: Connection) -> bool:
    """Return whether nobody knows what state it is in. One that is closed cannot even say if it is in a transaction."""
    try:
        return connection.is_closed() or connection.is_in_transaction()
    except asyncpg.InterfaceError:  # a shared pool took it back when it broke
        return True


def without_pooler(url: str) -> tuple[str, bool]:
    """`?pooler=transaction` is ours: the connections are a pooler's, which hands them on after each transaction."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    pooler = options.pop("pooler", None)
    if pooler not in (None, "transaction"):
        raise BadConfig(f"pooler cannot be {pooler!r}", hint="leave it out, or write ?pooler=transaction")
    return urlunsplit(parts._replace(query=urlencode(options))), pooler is not None


def translated(error: BaseException, deadline: timedelta) -> RotaError:
    match error:
        case RotaError():
            return error
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return BadConfig("PostgreSQL refused the user or password", hint="check ROTA_DATABASE_URL")
        case asyncpg.InvalidCatalogNameError():
            return BadConfig("PostgreSQL has no database of that name", hint="create it, then run `rota migrate`")
        case asyncpg.DataError() | UnicodeError():
            return Invalid(f"a value cannot be stored: {error}")
        case asyncpg.ClientConfigurationError() | ValueError():
            return BadConfig(f"the database URL is not understood: {error}")
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedColumnError():
            return Unavailable(f"the database has no rota tables: {error}", hint="run `rota migrate`")
        case asyncpg.InvalidSQLStatementNameError() | asyncpg.DuplicatePreparedStatementError():
            message = str(error).splitlines()[0]  # the driver's advice below is for those who call it themselves
            return BadConfig(f"PostgreSQL: {message}", hint="behind a pooler, add ?pooler=transaction to the URL")
        case asyncpg.QueryCanceledError():
            return DeadlineExceeded("a statement", deadline.total_seconds())
        case TimeoutError():
            return DeadlineExceeded("connecting to PostgreSQL", min(_CONNECT, deadline.total_seconds()))
        case _:
            hint = "is it running? check --database or ROTA_DATABASE_URL" if isinstance(error, OSError) else None
            return Unavailable(f"PostgreSQL: {error or type(error).__name__}", hint=hint)
