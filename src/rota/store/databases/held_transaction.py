"""A transaction that stays open while somebody else's code works in it, and is sealed by a run's fence."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from rota.core.progress.notes import Notes
from rota.core.runs.outcome import Report
from rota.errors import Conflict, DeadlineExceeded, FileReplaced, LeaseLost
from rota.store.databases.database import Tx, Work, drive
from rota.store.progress.notes import write
from rota.store.runs import report as reports

if TYPE_CHECKING:
    from rota.store.databases.sqlite.sqlite import SqliteTx

T = TypeVar("T")

_LONGEST = 8.0  # others wait for ten seconds before they say that the file is locked


async def seal(tx: Tx, lease: tuple[str, int], report: Report | None, notes: Notes | None) -> None:
    """Write the run's success, or only require that the lease is still there, under its current fence.

    With another fence nothing is committed: `LeaseLost`.
    """
    # The fence is checked in the transaction of the user's own writes, and keeps the lease's row locked until the
    # commit: no other attempt can begin in between.
    if await write(tx, notes) if notes else not await tx.fetch("lock_noted", [lease]):
        raise LeaseLost(*lease)
    if report is not None and (await reports.report(tx, [report])).refused:
        raise LeaseLost(*lease)


class SqliteSession:
    """A connection of its own, in a thread of its own: as long as it is open, nobody else writes to the file."""

    def __init__(self, tx: SqliteTx, thread: ThreadPoolExecutor) -> None:
        self._tx = tx
        self._thread = thread
        self._write_lock = contextlib.ExitStack()
        self._is_given_up = False
        self._is_closed = False
        self.connection = tx.connection

    async def execute(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return await self.do(lambda: self.connection.execute(sql, tuple(values)).fetchall())

    async def within(self, work: Work[T]) -> T:
        return await self.do(lambda: self._within(work))

    def _within(self, work: Work[T]) -> T:
        if not self._tx.in_transaction:
            raise Conflict("the transaction was ended inside its block", hint="leave that to the block")
        result: T = drive(work(self._tx))
        return result

    async def do(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._in_time, act)

    def _in_time(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except Exception as error:
            if self._is_given_up:
                raise DeadlineExceeded("a transaction", _LONGEST) from error
            raise

    def begin(self) -> None:
        # Lock order: rota's own write lock before SQLite's, as in the writer's thread.
        self._write_lock.enter_context(self._tx.writing())
        # Immediate: a transaction that begins with a read and writes later fails at once if somebody wrote in between.
        self._tx.control("begin immediate")

    def commit(self) -> None:
        """Commit. Whoever left the block relies on it from here on: it must be where others will find it."""
        self._tx.control("commit")
        try:
            self._tx.require_same_file()
        except FileReplaced as error:
            self._tx.lose_file(error)
            raise

    def give_up(self) -> None:
        """Whatever it is at; what comes later must not be committed by itself, so there is no connection any more."""
        self._is_given_up = True
        # Called on the event loop: of a connection's methods, only this one may be called while its own thread uses it.
        self.connection.interrupt()
        self._thread.submit(self.close)

    def close(self) -> None:
        """Close, and roll back what is not committed. In its thread; a second time does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._tx.roll_back()
            self._write_lock.close()
            self._tx.close()


@contextlib.asynccontextmanager
async def sqlite_session(
    connect: Callable[[], SqliteTx], tell: Callable[[set[str | None]], None]
) -> AsyncIterator[SqliteSession]:
    """Open a transaction on a connection of its own, commit it at the end, and `tell` whom it woke.

    Nobody else can write meanwhile: after a while it is given up.
    """
    loop = asyncio.get_running_loop()
    with _thread() as thread:
        tx = await _opened(thread, connect)
        session = SqliteSession(tx, thread)
        try:
            await session.do(session.begin)
            limit = loop.call_later(_LONGEST, session.give_up)  # its own time, without what it waited for others
            try:
                yield session
                await session.do(session.commit)
            finally:
                limit.cancel()
        finally:
            # Shielded: a caller who is cancelled once more must not leave the file locked for everybody.
            await asyncio.shield(session.do(session.close))
        if tx.woken:  # told when the file is free: who is woken earlier would only wait for it
            tell(tx.woken)


async def _opened(thread: ThreadPoolExecutor, connect: Callable[[], SqliteTx]) -> SqliteTx:
    opening = thread.submit(connect)
    try:
        return await asyncio.wrap_future(opening)
    except asyncio.CancelledError:
        thread.submit(_close_if_opened, opening)  # nobody else knows of it
        raise


def _close_if_opened(opening: Future[SqliteTx]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


@contextlib.contextmanager
def _thread() -> Iterator[ThreadPoolExecutor]:
    thread = ThreadPoolExecutor(1, thread_name_prefix="rota-transaction")
    try:
        yield thread
    finally:
        # Not waited for: its thread may still be in a statement, and the event loop would stand still.
        thread.shutdown(wait=False)
