"""Faults for tests: a database that goes away, and a worker that dies in the middle of a handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from rota.config import Config
from rota.core.runs.outcome import Report
from rota.core.workers.worker import WorkerInfo
from rota.engine.handlers.attempt import Attempt
from rota.engine.worker.heartbeat import Beat
from rota.engine.worker.worker import Worker
from rota.errors import Unavailable
from rota.registry.jobs import Registry
from rota.store import Database, Store
from rota.store.databases.database import Hint, Session, Work
from rota.store.databases.epoch import Standing

T = TypeVar("T")


class Died(asyncio.CancelledError):
    """The worker's process has died: whatever its tasks await, nobody learns how they end."""


class BreakableDatabase:
    """Proxy of a database. `fault` is called before each call and returns the error to raise, if any."""

    standing: Standing  # the inner database's, as are the following
    polls: bool  # the inner database's, through __getattr__
    hears: bool

    def __init__(self, inner: Database, fault: Callable[[], BaseException | None]) -> None:
        self._inner = inner
        self._fault = fault
        self.dialect, self.clock = inner.dialect, inner.clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _check(self) -> None:
        if (error := self._fault()) is not None:
            raise error

    async def transact(self, work: Work[T], **how: Any) -> T:
        self._check()
        return await self._inner.transact(work, **how)

    async def alone(self, work: Work[T]) -> T:
        self._check()
        return await self._inner.alone(work)

    async def glance(self, work: Work[T]) -> T:
        self._check()
        return await self._inner.glance(work)

    async def read(self, work: Work[T]) -> T:
        self._check()
        return await self._inner.read(work)

    async def heed(self, work: Work[T]) -> T:
        self._check()
        return await self._inner.heed(work)

    async def foresee(self, work: Work[Any]) -> None:
        self._check()
        await self._inner.foresee(work)

    def session(self) -> AbstractAsyncContextManager[Session]:
        self._check()
        return self._inner.session()

    def version(self) -> object | None:
        return self._inner.version()

    def notify(self, queues: Iterable[str | None]) -> None:
        self._inner.notify(queues)

    def listen(self, hint: Hint) -> Callable[[], None]:
        return self._inner.listen(hint)

    async def renew(self) -> None:
        """Do nothing: nothing here depends on where a database is."""

    def twin(self) -> Database:
        return BreakableDatabase(self._inner.twin(), self._fault)

    async def close(self) -> None:
        await self._inner.close()


class Outage:
    """Switch that makes a database unavailable to all who use it."""

    def __init__(self) -> None:
        self.on = False

    def __call__(self) -> BaseException | None:
        return Unavailable("the database is away") if self.on else None


class MortalWorker(Worker):
    """Worker that can die: from then on nothing of it reaches the database, and its leases expire."""

    def __init__(self, store: Store, registry: Registry, info: WorkerInfo, config: Config) -> None:
        self.dead = False
        self._loop_of_worker = asyncio.get_running_loop()
        own = Store(BreakableDatabase(store.database, lambda: Died() if self.dead else None), store.new_id)
        super().__init__(own, registry, info, config)

    def die(self) -> None:
        """Mark the worker as dead and drop its attempts. Safe from any thread; the caller raises `Died` next."""
        self.dead = True
        self._loop_of_worker.call_soon_threadsafe(self._drop_everything)

    def deliver(self, beat: Beat) -> None:
        """Deliver a heartbeat's answer. Safe from any thread."""
        self._loop_of_worker.call_soon_threadsafe(self.on_heartbeat, beat)

    def _drop_everything(self) -> None:
        for attempt in list(self.active.values()):
            self._executor.lose(attempt)

    def ended(self, attempt: Attempt, report: Report | None) -> None:
        super().ended(attempt, None if self.dead else report)

    async def drain_once(self) -> list[str]:
        try:
            return await super().drain_once()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.dead or (task is not None and task.cancelling()):
                raise
            return list(self._drained or ())

    async def bury(self) -> None:
        """Release threads and processes, as the system does when a process ends. Write nothing to the database."""
        await self._executor.close()
