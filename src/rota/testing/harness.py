"""An app on a database of its own, under a clock that stands still, with the engine's parts a step at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import msgspec

from rota.app import Rota
from rota.client import Client, Order
from rota.config import Config, changed
from rota.core.model import Attempt, Enqueued, Run
from rota.core.states import RunState
from rota.engine.conductor import Conductor
from rota.engine.declaring import declare_schedules
from rota.engine.engine import worker_info
from rota.engine.janitor import Janitor
from rota.engine.meters import Meters
from rota.engine.planner import Planner
from rota.engine.promoter import Promoter
from rota.engine.watchman import Watchman
from rota.job import Job
from rota.store import Store, open_database, open_store
from rota.testing.clock import ManualClock
from rota.testing.draining import adrain
from rota.testing.hands import HandWorker, RunReference, id_of

_BATCH = 500


class HastyReaper:
    """The reaper without the real one's caution: under a clock moved by hand, nobody was merely cut off."""

    def __init__(self, store: Store, interval: timedelta, meters: Meters | None = None) -> None:
        self._store = store
        self._interval = interval
        self._meters = meters or Meters()

    async def step(self) -> timedelta:
        while True:
            reaped = await self._store.reap(_BATCH)
            self._meters.reaped(reaped)
            if reaped.requeued + reaped.ended < _BATCH:
                await self._store.tidy()
                return self._interval


class Harness:
    """`async with Harness(app) as harness:` inside the block, everything the app enqueues goes to the harness.

    Without an app it makes one, and declares the jobs you enqueue by name as it meets them: enough for tests that
    drive workers by hand. Without a url it uses an SQLite file that is deleted afterwards; a database that a url names
    is migrated and kept. `settings` are those of `Config`.

        run = await harness.enqueue("flaky")
        zombie = await harness.worker("a").claim()       # and never reports
        harness.clock.advance(harness.lease + SECOND)
        await harness.reaper.step()
        assert await harness.state(run) is RunState.QUEUED
        with pytest.raises(LeaseLost):
            await zombie.finish(run)
    """

    client: Client
    store: Store
    reaper: HastyReaper
    planner: Planner
    promoter: Promoter
    conductor: Conductor
    janitor: Janitor
    watchman: Watchman

    def __init__(
        self, app: Rota | None = None, url: str | None = None, clock: ManualClock | None = None, **settings: Any
    ) -> None:
        self.clock = clock or ManualClock()
        self.app = app or Rota(config=Config())
        self._declares = app is None
        self._url = url
        self._settings = settings
        self.workers: list[HandWorker] = []
        self._exit = AsyncExitStack()

    @property
    def config(self) -> Config:
        return self.app.config

    @property
    def lease(self) -> timedelta:
        return self.config.lease

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as exiting:
            url = self._url or _temporary_file(exiting)
            await _migrate(url, self.clock)
            config = msgspec.structs.replace(self.app.config, database_url=url, **self._settings)
            exiting.enter_context(self.app.diverted(self._open, config=config))
            exiting.callback(self.app.close)
            exiting.push_async_callback(self.app.aclose)
            self.client = await self.app.connect()
            self.store = self.client.store
            meters = self.app.meters
            self.reaper = HastyReaper(self.store, config.reaper, meters)
            self.planner = Planner(self.store, self.app.registry.schedules.providers, config.poll, meters)
            self.promoter = Promoter(self.store, config.poll, meters)
            self.conductor = Conductor(self.store, config.poll, meters)
            self.janitor = Janitor(self.store, config.janitor, meters)
            self.watchman = Watchman(self.store, config.expect)
            await self.store.save_jobs(self.app.registry.definitions())
            await declare_schedules(self.store, self.app.registry.schedules)
            self._exit = exiting.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        async with self._exit:
            for worker in self.workers:
                await worker.leave()

    async def _open(self) -> Client:
        store = await open_store(self.config.database_url, manual_clock=self.clock)
        return Client(store, self.app.registry, self.config, self.app.meters)

    async def declare(self, name: str, /, **options: Any) -> None:
        """A job that does nothing, for workers driven by hand; `options` are those of `@app.job(...)`."""

        async def nothing(**_payload: Any) -> None: ...

        self.app.job(**{**options, "name": name})(nothing)
        await self.store.save_jobs([self.app.registry.newest(name).definition])

    async def enqueue(
        self, job: str | Job[..., Any], options: Mapping[str, Any] | None = None, /, **payload: Any
    ) -> Enqueued:
        """`options` are those of the run: `await harness.enqueue("report", {"delay": "10m"}, month=5)`."""
        name = job if isinstance(job, str) else job.name
        if self._declares and name not in self.app.registry:
            await self.declare(name)
        return await self.client.enqueue(Order(name, payload, options or {}))

    def worker(
        self,
        name: str = "worker",
        *,
        queues: Sequence[str] | None = None,
        labels: Sequence[str] = (),
        version: str | None = None,
    ) -> HandWorker:
        """A new worker at each call: the same name again is somebody else, as after a restart."""
        config = changed(self.config, {"worker_labels": ",".join(labels) or None, "worker_version": version})
        worker = HandWorker(self.client, worker_info(self.app.registry, config, name, queues))
        self.workers.append(worker)
        return worker

    async def drain(self) -> Sequence[Run]:
        """Run everything that is due, with the real worker; returns the runs it ran."""
        return await adrain(self.app)

    async def run(self, run: RunReference) -> Run:
        return await self.client.get(id_of(run))

    async def state(self, run: RunReference) -> RunState:
        return (await self.run(run)).state

    async def attempts(self, run: RunReference) -> Sequence[Attempt]:
        return await self.client.attempts(id_of(run))

    async def cancel(self, run: RunReference) -> RunState:
        return await self.client.cancel(id_of(run))


def _temporary_file(exiting: AsyncExitStack) -> str:
    folder = Path(tempfile.mkdtemp(prefix="rota-"))
    exiting.callback(shutil.rmtree, folder, ignore_errors=True)
    return f"sqlite:///{folder / 'rota.db'}"


async def _migrate(url: str, clock: ManualClock) -> None:
    store = Store(open_database(url, clock))
    try:
        await store.migrate()
    finally:
        await store.close()
