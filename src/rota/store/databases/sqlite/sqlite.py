"""SQLite: one writer connection per process and file, readers beside it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from typing import Any, TypeVar

import apsw
import msgspec

from rota.errors import FileReplaced
from rota.store.databases import epoch, fork
from rota.store.databases.database import Hint, HotForms, Row, Session, Work
from rota.store.databases.epoch import Epoch, Standing
from rota.store.databases.held_transaction import sqlite_session
from rota.store.databases.sqlite.connection_thread import ServingThread, read_each, write_group
from rota.store.databases.sqlite.file_hints import hints_of
from rota.store.databases.sqlite.file_identity import OpenFile, openings_of
from rota.store.databases.sqlite.file_locks import Identity, identity
from rota.store.databases.sqlite.file_version import FileVersion
from rota.store.databases.sqlite.row_batches import AT_ONCE, execute_rows
from rota.store.databases.sqlite.sqlite_hot import SqliteHotForms
from rota.store.databases.statements import SQLITE, Statement, compile_sql, compile_statement
from rota.values.clock import Clock, HostClock

T = TypeVar("T")

# A page of the dashboard asks several questions at once, of which some go through more than others.
_READERS = 4
_BUSY_MS = 10_000
_BUSY_REST_MS, _BUSY_LOOK_MS = 10, 1
# Full: a commit is on the disk before anybody is answered. With `normal`, a write-ahead log is synced at checkpoints
# only, and a power failure would undo what was reported as done.
_PRAGMAS = "pragma synchronous = full; pragma foreign_keys = on; pragma temp_store = memory; pragma cache_size = -16000"
# SQLite's own would be made within a commit, before anybody has looked whether the file is still the one.
_CHECKPOINT = "pragma wal_autocheckpoint = 0"
_WORTH_A_CHECKPOINT = 1_000
_LONG_LOG = 16_000  # pages: carried over although somebody waits, because there was no rest for long


class BusyWait:
    """Wait of whoever finds the file locked. SQLite's own looks ten times a second in the end: while others write
    without rest, it may miss each of their short gaps for as long as it waits.
    """

    def __init__(self) -> None:
        self._since = 0.0

    def __call__(self, tries: int) -> bool:
        if tries == 0:
            self._since = time.monotonic()
        time.sleep(_BUSY_LOOK_MS / 1_000)
        return time.monotonic() - self._since < _BUSY_MS / 1_000


class SqliteTx:
    dialect = SQLITE

    def __init__(self, connection: apsw.Connection, clock: Clock, file: OpenFile | None = None) -> None:
        """Wrap a connection. Without a `file`, as of a database in memory, nothing is looked at but the connection."""
        self.hot: HotForms = SqliteHotForms(self)
        self.connection = connection
        self.has_place = True
        self.file = file
        self.woken: set[str | None] = set()
        self.micros = clock.micros
        self._statements: dict[str, Statement] = {}
        self._carried_over = 0
        self._log_pages = 0
        if file:
            connection.set_wal_hook(self._note_log)

    def _note_log(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def wake(self, *queues: str | None) -> None:
        self.woken.update(queues)

    def _statement(self, name: str) -> Statement:
        statement = self._statements.get(name)
        if statement is None:
            statement = self._statements[name] = compile_statement(name, SQLITE, manual_clock=True)
        return statement

    async def fetch(self, statement: str, rows: Sequence[Row] | None = None, /, **values: object) -> Sequence[Row]:
        if rows is not None and not self._statement(statement).columns:
            return self.each(statement, rows)
        if rows is not None:
            values["rows"] = msgspec.json.encode(list(rows)).decode()
        return self._fetch(self._statement(statement).sql, values)

    def _fetch(self, sql: str, values: dict[str, Any]) -> Sequence[Row]:
        values["now"] = self.micros()
        return self.connection.execute(sql, values).fetchall()

    def each(self, name: str, rows: Sequence[Row]) -> Sequence[Row]:
        sql = self._statement(name).sql
        if len(rows) < AT_ONCE:
            return self.connection.executemany(sql, rows).fetchall()
        return execute_rows(self.connection, sql, rows)

    def changes(self) -> int:
        """Rows written since the connection was opened."""
        return self.connection.total_changes()

    async def fetch_sql(self, sql: str, /, **values: object) -> Sequence[Row]:
        return self._fetch(compile_sql("composed", sql, SQLITE, manual_clock=True).sql, values)

    async def script(self, sql: str) -> None:
        # Statements after one that returns rows are lazy in apsw: fetchall runs them all.
        self.connection.execute(sql).fetchall()

    @property
    def in_transaction(self) -> bool:
        return self.connection.in_transaction

    def control(self, sql: str) -> None:
        self.connection.execute(sql).fetchall()

    @property
    def wants_rest(self) -> bool:
        """Return whether so much was written that it should be carried over from the log into the file, when nobody
        waits.
        """
        return self.changes() - self._carried_over >= _WORTH_A_CHECKPOINT

    @property
    def needs_rest(self) -> bool:
        """Return whether the log is so long that it cannot wait any more."""
        return self._log_pages >= _LONG_LOG

    def rest(self) -> None:
        """No other process is held up; whoever writes in this one waits. What is not carried over is the next time."""
        self._carried_over = self.changes()
        if self.file and self.file.problem():
            return  # into another file it must not go: whoever commits next is told
        checkpointing = self.file.locks.checkpointing() if self.file else nullcontext(True)
        with suppress(apsw.Error), checkpointing as is_alone:
            if is_alone:
                self.connection.wal_checkpoint()
                if self.file:
                    self.file.note_checkpoint()

    def roll_back(self) -> None:
        """Undo what is not committed. SQLite refuses while a cursor is not read to its end: then closing does it."""
        with suppress(apsw.Error):
            if self.in_transaction:
                self.control("rollback")

    def writing(self) -> AbstractContextManager[None]:
        """Around a transaction that writes."""
        return self.file.locks.writing() if self.file else nullcontext()

    def require_same_file(self) -> None:
        """Raise FileReplaced if what is committed here would not be found by whoever opens the path."""
        if self.file:
            self.file.require_same()

    @property
    def is_stale(self) -> bool:
        """Return whether to open the file anew: another connection of this process has found that out, or its place
        could not be recorded.
        """
        return self.file is not None and (self.file.is_stale or not self.has_place)

    def lose_file(self, error: FileReplaced) -> None:
        """Let everybody in this process close it; whoever calls this closes this connection."""
        if self.file:
            openings_of(self.file.path).lose(error, self.file)

    def close(self) -> None:
        if self.file:
            openings_of(self.file.path).close(self.file)
        else:
            self.connection.close()


class SqliteDatabase:
    dialect = SQLITE
    polls = False
    hears = True

    def __init__(self, path: str, manual_clock: Clock | None = None) -> None:
        self.path = path
        # Once and for all: the working directory may be another one when a file is opened, or opened again in a fork.
        self._absolute = os.path.realpath(path)
        self.clock = manual_clock or HostClock()
        self._manual_clock = manual_clock
        self._connections: _Connections | None = None
        self._hints = hints_of(self._absolute)
        self._users = 1
        self.standing = Standing()  # a file is never held: whoever moves one knows it

    @property
    def url(self) -> str | None:
        """URL for other processes; their time would not be a manual clock's."""
        return None if self._manual_clock else f"sqlite:///{self._absolute}"

    def _connected(self) -> _Connections:
        connections = self._connections
        if connections is None:
            with fork.lock:
                # Looked at again under the lock: another thread may have come first.
                connections = self._connections = self._connections or _connections_to(
                    self._absolute, self._manual_clock
                )
                connections.users.add(self)
        return connections

    async def transact(
        self, work: Work[T], *, repeatable: bool = True, deadline: timedelta | None = None, acts: bool = False
    ) -> T:
        return await self._connected().writer.submit(work, self.path, tell=self.notify)

    async def alone(self, work: Work[T]) -> T:
        return await self._connected().writer.submit(work, self.path, tell=self.notify)

    async def glance(self, work: Work[T]) -> T:
        return await self.read(work)

    async def read(self, work: Work[T]) -> T:
        return await self._connected().free_reader().submit(work, self.path)

    async def heed(self, work: Work[T]) -> T:
        return await self.read(work)

    async def foresee(self, work: Work[Any]) -> None:
        """Each connection has a memory of its own, which is empty after any other process has written."""
        await self._connected().writer.submit(work, self.path, reads=True)

    def session(self) -> AbstractAsyncContextManager[Session]:
        return sqlite_session(self._connected().open_another, self.notify)

    def version(self) -> object | None:
        return self._connected().version.now()

    def notify(self, queues: Iterable[str | None]) -> None:
        self._hints.tell(queues)

    def listen(self, hint: Hint) -> Callable[[], None]:
        return self._hints.add(hint, asyncio.get_running_loop())

    async def renew(self) -> None:
        await asyncio.to_thread(self._connected().writer.stop)  # it is opened again at its next use

    def twin(self) -> SqliteDatabase:
        """The same: one writer per process, and its thread serves any number of event loops."""
        self._users += 1
        return self

    async def close(self) -> None:
        self._users -= 1
        if self._users:
            return
        with fork.lock:
            connections, self._connections = self._connections, None
            if connections is None:
                return
            connections.users.discard(self)
            if connections.users:
                return
        # Outside the lock, and in a thread: it waits for what was submitted, up to the patience of a locked file.
        await asyncio.to_thread(connections.stop)


class _Connections:
    """One file's writer and readers, for everybody in this process who brings no clock of his own."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._opened: Identity | None = None
        self.writer = ServingThread("rota-sqlite-writer", lambda: self._open_writer(self.writer.drop), write_group)
        self.readers = [self._reader() for _ in range(_READERS)]
        self._unanswered = [reader.unanswered for reader in self.readers]
        self.version = FileVersion(path)
        # Weak: who is forgotten instead of closed, as by a forked child, no longer counts.
        self.users: weakref.WeakSet[SqliteDatabase] = weakref.WeakSet()

    def _open_writer(self, drop: Callable[[], None]) -> SqliteTx:
        # Made once: where a file was deleted, an empty one would only be in the way of whoever puts it back.
        flags = apsw.SQLITE_OPEN_CREATE if self._opened is None else 0
        tx = self._open(flags, f"{_PRAGMAS}; {_CHECKPOINT}", drop)
        self._opened = identity(self._path)
        tx.has_place = _enter(tx.connection, self._path, self._clock.micros())
        return tx

    def _reader(self) -> ServingThread:
        reader = ServingThread(
            "rota-sqlite-reader", lambda: self._open(0, "pragma query_only = on", reader.drop), read_each
        )
        return reader

    def free_reader(self) -> ServingThread:
        """Return the first reader with the fewest jobs: a slow question does not hold up others, and as long as one
        reader is enough, only one connection is open, whose cache has what was asked for last."""
        return self.readers[self._unanswered.index(min(self._unanswered, key=len))]

    def _open(self, flags: int, pragmas: str, drop: Callable[[], None]) -> SqliteTx:
        def connect() -> apsw.Connection:
            is_new = not os.path.exists(self._path)
            connection = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READWRITE | flags)
            if is_new:  # for its owner only, because payloads may be secret; SQLite gives its log the same mode
                with contextlib.suppress(OSError):
                    os.chmod(self._path, 0o600)
            # Before the first statement, which may meet a lock already.
            connection.set_busy_handler(patience)
            # A plan that may depend on a bound value is made again for each value, which costs more than all else.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            _use_wal(connection)
            connection.execute(pragmas).fetchall()
            return connection

        patience, openings = BusyWait(), openings_of(self._path)
        openings.wait_for_others()
        file = openings.open(connect, patience, drop)
        return SqliteTx(file.connection, self._clock, file)

    def open_another(self) -> SqliteTx:
        """Open a connection for a transaction, which ends soon: whoever opens the file anew waits for it."""
        return self._open_writer(lambda: None)

    @property
    def current(self) -> bool:
        """Return whether the file is still the one that was opened: nobody finds what is written to an old one."""
        return self._opened in (None, identity(self._path))

    def stop(self) -> None:
        """Stop the threads. Whoever comes meanwhile opens the file again."""
        self.version.close()
        for reader in self.readers:
            reader.stop()
        self.writer.stop()
        self._opened = None


def _enter(connection: apsw.Connection, path: str, now: int) -> bool:
    """Begin an epoch if the last one was in another file: this may be a backup that was put back.

    Return whether the file says where it is; not if it cannot be written to, because of a full disk for example.
    """
    if not connection.execute("select 1 from sqlite_master where name = 'rota_epoch'").fetchall():
        return True
    place = "{}/{}".format(*identity(path) or ("", ""))
    if epoch.following(_last(connection), place, now) is None:
        return True
    connection.execute("begin immediate")
    try:
        last = _last(connection)  # again: of several processes, one begins it
        begun = epoch.following(last, place, now)
        if begun is not None:
            connection.execute("insert into rota_epoch (epoch, place, floor, since) values (?, ?, ?, ?)", (*begun, now))
        connection.execute("commit")
    except apsw.Error:
        if connection.in_transaction:
            connection.execute("rollback")
        return False
    if begun is not None:
        epoch.tell(begun, last)
    return True


def _last(connection: apsw.Connection) -> Epoch | None:
    row = connection.execute(epoch.LAST).fetchone()
    return None if row is None else Epoch(*row)


_shared: weakref.WeakValueDictionary[str, _Connections] = weakref.WeakValueDictionary()


def _connections_to(path: str, manual_clock: Clock | None) -> _Connections:
    """Find or make the connections of a file. The caller holds the lock of forks."""
    if manual_clock is not None:
        return _Connections(path, manual_clock)
    connections = _shared.get(path)
    if connections is None or not connections.current:
        connections = _shared[path] = _Connections(path, HostClock())
    return connections


def is_open_here(path: str) -> bool:
    """Return whether this process has that file open through rota."""
    connections = _shared.get(os.path.realpath(path))
    return connections is not None and len(connections.users) > 0


def _use_wal(connection: apsw.Connection) -> None:
    """Switch to the write-ahead log, patiently: of several processes that make a file at once, SQLite tells some that
    it is locked and does not let them wait.
    """
    for tries_left in reversed(range(_BUSY_MS // _BUSY_REST_MS)):
        try:
            connection.execute("pragma journal_mode = wal").fetchall()
            return
        except apsw.BusyError:
            if not tries_left:
                raise
            time.sleep(_BUSY_REST_MS / 1_000)
