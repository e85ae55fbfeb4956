"""A transaction that stays open while somebody else's code works in it, and is sealed by a run's fence."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rota.core.endings import Report
from rota.core.notes import Notes
from rota.errors import DeadlineExceeded, LeaseLost
from rota.store import reporting
from rota.store.database import Tx, Work
from rota.store.driving import drive
from rota.store.notes import write

if TYPE_CHECKING:
    from rota.store.sqlite import SqliteTx

T = TypeVar("T")

_LONGEST = 8.0  # others wait for ten seconds before they say that the file is locked


async def seal(tx: Tx, lease: tuple[str, int], report: Report | None, notes: Notes | None) -> set[str]:
    """Under the run's current fence or not at all: its success, or only that the lease is still there.

    Returns the queues where something may begin because of it.
    """
    if await write(tx, notes) if notes else not await tx.fetch("lock_noted", [lease]):
        raise LeaseLost(*lease)
    if report is None:
        return set()
    reported = await reporting.report(tx, [report])
    if reported.refused:
        raise LeaseLost(*lease)
    return reported.queues


class SqliteSession:
    """A connection of its own, in a thread of its own: as long as it is open, nobody else writes to the file."""

    def __init__(self, tx: SqliteTx, thread: ThreadPoolExecutor) -> None:
        self._tx = tx
        self._thread = thread
        self.connection = tx.connection

    async def execute(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return await self._do(lambda: self.connection.execute(sql, tuple(values)).fetchall())

    async def within(self, work: Work[T]) -> T:
        return await self._do(lambda: drive(work(self._tx)))

    async def _do(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)


@contextlib.asynccontextmanager
async def sqlite_session(connect: Callable[[], SqliteTx]) -> AsyncIterator[SqliteSession]:
    """Nobody else can write meanwhile: after a while it is rolled back, whatever it is at."""
    loop = asyncio.get_running_loop()
    with _thread() as thread:
        do = partial(loop.run_in_executor, thread)
        tx = await do(connect)
        limit = loop.call_later(_LONGEST, _give_up, tx, thread)
        try:
            await do(tx.control, "begin immediate")
            yield SqliteSession(tx, thread)
            if not await do(lambda: tx.in_transaction):
                raise DeadlineExceeded("a transaction", _LONGEST)
            await do(tx.control, "commit")
        finally:
            limit.cancel()
            await asyncio.shield(do(_close, tx))


def _give_up(tx: SqliteTx, thread: ThreadPoolExecutor) -> None:
    tx.connection.interrupt()
    thread.submit(_roll_back, tx)


def _roll_back(tx: SqliteTx) -> None:
    if tx.in_transaction:
        tx.control("rollback")


@contextlib.contextmanager
def _thread() -> Iterator[ThreadPoolExecutor]:
    thread = ThreadPoolExecutor(1, thread_name_prefix="rota-transaction")
    try:
        yield thread
    finally:
        thread.shutdown(wait=False)


def _close(tx: SqliteTx) -> None:
    _roll_back(tx)
    tx.close()
