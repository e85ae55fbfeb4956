"""SQLite: one writer connection in one thread, whole transactions per hop, group commit, readers beside it."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from rota.clock import Clock, HostClock
from rota.errors import BadConfig, Invalid, RotaError, Unavailable
from rota.store.database import Hint, HotForms, Row, Work
from rota.store.sqlite_hot import SqliteHotForms
from rota.store.statements import SQLITE, Statement, compile_sql, compile_statement

T = TypeVar("T")

_BUSY_MS = 10_000
_BUSY_REST_MS = 10
_GROUP = 64
_WATCH_SECONDS = 0.05
_PRAGMAS = "pragma synchronous = full; pragma foreign_keys = on; pragma temp_store = memory; pragma cache_size = -16000"


class SqliteTx:
    dialect = SQLITE

    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self.hot: HotForms = SqliteHotForms(self)
        self._connection = connection
        self._clock = clock
        self._statements: dict[str, Statement] = {}

    def _statement(self, name: str) -> Statement:
        found = self._statements.get(name)
        if found is None:
            found = self._statements[name] = compile_statement(name, SQLITE, manual_clock=True)
        return found

    async def fetch(self, statement: str, rows: Sequence[Row] | None = None, /, **values: object) -> Sequence[Row]:
        if rows is not None:
            values["rows"] = msgspec.json.encode(rows).decode()
        return self._fetch(self._statement(statement).sql, values)

    def _fetch(self, sql: str, values: dict[str, Any]) -> Sequence[Row]:
        values["now"] = self._clock.micros()
        return self._connection.execute(sql, values).fetchall()

    def each(self, name: str, rows: Iterable[Row]) -> Sequence[Row]:
        return self._connection.executemany(self._statement(name).sql, rows).fetchall()

    def micros(self) -> int:
        return self._clock.micros()

    async def fetch_sql(self, sql: str, /, **values: object) -> Sequence[Row]:
        return self._fetch(compile_sql("composed", sql, SQLITE, manual_clock=True).sql, values)

    async def script(self, sql: str) -> None:
        # Statements after one that returns rows are lazy in apsw: fetchall runs them all.
        self._connection.execute(sql).fetchall()

    def control(self, sql: str) -> None:
        self._connection.execute(sql).fetchall()

    def close(self) -> None:
        self._connection.close()


class SqliteDatabase:
    dialect = SQLITE

    def __init__(self, path: str, clock: Clock | None = None) -> None:
        self.path = path
        self.clock = clock or HostClock()
        self._writer = _Thread("rota-sqlite-writer", lambda: self._open(writing=True), _write_group)
        self._reader = _Thread("rota-sqlite-reader", lambda: self._open(writing=False), _read_one)
        self._hints = _hints_of(path)
        self._users = 1

    def _open(self, *, writing: bool) -> SqliteTx:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if writing else 0)
        try:
            connection = apsw.Connection(self.path, flags=flags)
            connection.set_busy_timeout(_BUSY_MS)
            _use_wal(connection)
            connection.execute(_PRAGMAS if writing else "pragma query_only = on").fetchall()
        except apsw.Error as error:
            raise _translated(error, self.path) from error
        return SqliteTx(connection, self.clock)

    async def transact(self, work: Work[T], *, repeatable: bool = True) -> T:
        return await self._writer.submit(work, self.path)

    async def alone(self, work: Work[T]) -> T:
        return await self._writer.submit(work, self.path)

    async def read(self, work: Work[T]) -> T:
        return await self._reader.submit(work, self.path)

    def notify(self, queues: Iterable[str | None]) -> None:
        self._hints.tell(queues)

    def listen(self, hint: Hint) -> Callable[[], None]:
        return self._hints.add(hint, asyncio.get_running_loop())

    def twin(self) -> SqliteDatabase:
        """The same: one writer per process, and its thread serves any number of event loops."""
        self._users += 1
        return self

    async def close(self) -> None:
        self._users -= 1
        if self._users:
            return
        await asyncio.to_thread(self._reader.stop)
        await asyncio.to_thread(self._writer.stop)


def _use_wal(connection: apsw.Connection) -> None:
    """Of several processes that make a file at once, SQLite tells some that it is locked and does not let them wait."""
    for tries_left in reversed(range(_BUSY_MS // _BUSY_REST_MS)):
        try:
            connection.execute("pragma journal_mode = wal").fetchall()
            return
        except apsw.BusyError:
            if not tries_left:
                raise
            time.sleep(_BUSY_REST_MS / 1_000)


_all_open: weakref.WeakSet[_Thread | _Hints] = weakref.WeakSet()
_closed_for_fork: list[_Thread | _Hints] = []


class _Job(msgspec.Struct):
    work: Work[Any]
    future: Future[Any]


class _Thread:
    """A connection and the thread that alone uses it; opened at the first use."""

    def __init__(
        self, name: str, connect: Callable[[], SqliteTx], serve: Callable[[SqliteTx, list[_Job]], None]
    ) -> None:
        self._name = name
        self._connect = connect
        self._serve = serve
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        _all_open.add(self)

    async def submit(self, work: Work[T], path: str) -> T:
        job = _Job(work, Future())
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
                self._thread.start()
            self._inbox.put(job)
        try:
            result: T = await asyncio.wrap_future(job.future)
        except apsw.Error as error:
            raise _translated(error, path) from error
        except (UnicodeError, OverflowError) as error:
            raise Invalid(f"a value cannot be stored: {error}") from error
        return result

    def stop(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        """What was submitted before is done first; what comes later begins anew."""
        thread, self._thread = self._thread, None
        if thread:
            self._inbox.put(None)
            thread.join()

    def before_fork(self) -> None:
        self._lock.acquire()
        self._end()

    def after_fork(self, *, in_child: bool) -> None:
        self._lock.release()

    def _loop(self) -> None:
        tx: SqliteTx | None = None
        while jobs := self._next_jobs():
            try:
                tx = tx or self._connect()
                self._serve(tx, jobs)
            except Exception as error:  # this thread serves everybody: no error may end it
                for job in jobs:
                    _settle(job.future, error=error)
            # A future keeps its traceback and thereby this frame: drop what it would keep alive.
            jobs.clear()
        if tx:
            tx.close()

    def _next_jobs(self) -> list[_Job]:
        first = self._inbox.get()
        if first is None:
            return []
        jobs = [first]
        while len(jobs) < _GROUP and not self._inbox.empty():
            job = self._inbox.get()
            if job is None:
                self._inbox.put(None)
                break
            jobs.append(job)
        return jobs


def _write_group(tx: SqliteTx, jobs: list[_Job]) -> None:
    """Group commit: one fsync for all that waited; each job in its own savepoint, so that it fails alone."""
    tx.control("begin immediate")
    done: list[tuple[_Job, Any]] = []
    try:
        for job in jobs:
            tx.control("savepoint job")
            try:
                done.append((job, _drive(job.work(tx))))
            except apsw.FullError:
                raise
            except Exception as error:
                tx.control("rollback to job; release job")
                _settle(job.future, error=error)
            else:
                tx.control("release job")
        tx.control("commit")
    except apsw.Error:
        if tx._connection.in_transaction:
            tx.control("rollback")
        raise
    for job, result in done:
        _settle(job.future, result=result)


def _read_one(tx: SqliteTx, jobs: list[_Job]) -> None:
    for job in jobs:
        tx.control("begin")
        try:
            _settle(job.future, result=_drive(job.work(tx)))
        except Exception as error:
            _settle(job.future, error=error)
        finally:
            tx.control("commit")


def _drive(body: Any) -> Any:
    """Run a coroutine that never suspends."""
    try:
        body.send(None)
    except StopIteration as stop:
        return stop.value
    body.close()
    raise RuntimeError("a transaction's body waited for something other than its statements")


def _settle(future: Future[Any], *, result: Any = None, error: BaseException | None = None) -> None:
    if future.done() or not future.set_running_or_notify_cancel():
        return  # cancelled, or failed alone before the group it was in failed as a whole
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class _Hints:
    """Listeners of one file: told at once by this process, and within 50 ms of another process's commit."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._listeners: dict[object, tuple[Hint, asyncio.AbstractEventLoop]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._watcher: threading.Thread | None = None
        _all_open.add(self)

    def tell(self, queues: Iterable[str | None]) -> None:
        names = list(queues)
        for hint, loop in list(self._listeners.values()):
            for name in names:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(hint, name)

    def add(self, hint: Hint, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        token = object()
        with self._lock:
            self._listeners[token] = (hint, loop)
            self._begin()

        def stop() -> None:
            with self._lock:
                self._listeners.pop(token, None)
                if not self._listeners:
                    self._wake.set()
                    self._watcher = None

        return stop

    def _begin(self) -> None:
        if self._listeners and self._watcher is None:
            self._wake = threading.Event()
            self._watcher = threading.Thread(
                target=self._watch, args=[self._wake], name="rota-sqlite-watch", daemon=True
            )
            self._watcher.start()

    def before_fork(self) -> None:
        self._lock.acquire()
        if self._watcher:
            self._wake.set()
            self._watcher.join()
            self._watcher = None

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self._listeners.clear()  # their event loops are the parent's
        self._begin()
        self._lock.release()

    def _watch(self, wake: threading.Event) -> None:
        try:
            connection = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READWRITE)
        except apsw.Error:
            return  # hints only: polling finds everything without them
        seen = None
        while not wake.wait(_WATCH_SECONDS):
            try:
                version = connection.execute("pragma data_version").fetchall()[0][0]
            except apsw.Error:
                continue
            if seen is not None and version != seen:
                self.tell([None])
            seen = version
        connection.close()


_all_hints: dict[str, _Hints] = {}
_all_hints_lock = threading.Lock()


def _hints_of(path: str) -> _Hints:
    with _all_hints_lock:
        return _all_hints.setdefault(str(Path(path).resolve()), _Hints(path))


def _before_fork() -> None:
    """Close every file. SQLite's knowledge of its locks is per process and copied by a fork, the locks are not: a child
    that opens a file which was open at the fork holds no lock, and loses what it writes once the parent closes its own.
    """
    _closed_for_fork.extend(_all_open)
    for one in _closed_for_fork:
        one.before_fork()


def _after_fork(*, in_child: bool) -> None:
    for one in _closed_for_fork:
        one.after_fork(in_child=in_child)
    _closed_for_fork.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )


def _translated(error: apsw.Error, path: str) -> RotaError:
    reasons: dict[type[apsw.Error], RotaError] = {
        apsw.BusyError: Unavailable(f"{path} is locked by another process"),
        apsw.FullError: Unavailable(f"the disk that holds {path} is full", hint="nothing was written; make room"),
        apsw.NotADBError: BadConfig(f"{path} is not an SQLite database"),
        apsw.CantOpenError: Unavailable(f"cannot open {path}", hint="does its folder exist, and may you write there?"),
        apsw.ReadOnlyError: Unavailable(f"{path} is read-only"),
    }
    return reasons.get(type(error), Unavailable(f"SQLite: {error}"))
