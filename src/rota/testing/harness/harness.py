"""Test harness: an app with its own database and a manual clock, whose engine is driven step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import rota
from rota.app import Rota
from rota.client.blocking import LoopThread
from rota.client.client import Client, Order
from rota.config import Config, changed
from rota.core.runs.run import Attempt, Enqueued, Run, RunFilter
from rota.core.states import RunState
from rota.engine.engine import worker_info
from rota.engine.loops.declare import declare_schedules
from rota.engine.loops.expectation_watcher import ExpectationWatcher
from rota.engine.loops.janitor import Janitor
from rota.engine.loops.planner import Planner
from rota.engine.loops.promoter import Promoter
from rota.engine.loops.replica_conductor import ReplicaConductor
from rota.engine.observability.meters import Meters
from rota.engine.worker.heartbeat import Heartbeat
from rota.errors import Invalid
from rota.job import Job
from rota.store import Store, open_database
from rota.testing.assertions.times import Moment, moment, shown
from rota.testing.clock import ManualClock
from rota.testing.harness.drain import drain_with
from rota.testing.harness.faults import BreakableDatabase, Died, MortalWorker, Outage
from rota.testing.harness.manual_worker import HandWorker, RunReference, id_of
from rota.testing.harness.pass_time import next_moment, pass_through
from rota.testing.harness.temporary_database import migrate, temporary_database
from rota.values.durations import Duration, parse_duration

if TYPE_CHECKING:
    from rota.testing.harness.blocking_harness import BlockingHarness


_PACKAGE = str(Path(rota.__file__).parent)


def tasks_left() -> list[str]:
    """Return descriptions of tasks that rota's code started, handlers among them.

    Tasks of others are not our concern.
    """
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    return [f"task {task.get_name()} still runs {task.get_coro()}" for task in tasks if _is_ours(task)]


def _is_ours(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and str(code.co_filename).startswith(_PACKAGE)


_BATCH = 500
_SECOND = timedelta(seconds=1)


class EagerReaper:
    """Reaper without the real one's caution: with a manual clock, no worker was merely cut off."""

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
    """Harness around an app: what the app enqueues inside `async with Harness(app) as harness:` goes to it.

    Without an app it creates one, and declares jobs as you enqueue them by name: enough for tests that drive workers by
    hand. Without a url it uses an SQLite file that is deleted afterwards; a database that a url names is migrated and
    kept. `settings` are those of `Config`.

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
    reaper: EagerReaper
    planner: Planner
    promoter: Promoter
    conductor: ReplicaConductor
    janitor: Janitor
    watchman: ExpectationWatcher

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
        self._depth = 0
        self.left_over: list[str] = []
        """After closing: active runs that no manual worker holds, and tasks of rota that still run."""
        self._outage = Outage()
        self._draining: MortalWorker | None = None
        self._dead: set[str] = set()

    @classmethod
    def blocking(
        cls, app: Rota | None = None, url: str | None = None, clock: ManualClock | None = None, **settings: Any
    ) -> BlockingHarness:
        """Return a harness for tests without an event loop: `with Harness.blocking(app) as harness:`."""
        from rota.testing.harness.blocking_harness import BlockingHarness

        return BlockingHarness(cls(app, url, clock, **settings))

    @property
    def config(self) -> Config:
        return self.app.config

    @property
    def lease(self) -> timedelta:
        return self.config.lease

    async def __aenter__(self) -> Self:
        """Open the harness. Entering it again inside its block returns the same one."""
        self._depth += 1
        if self._depth > 1:
            return self
        try:
            await self._enter()
        except BaseException:
            self._depth = 0
            raise
        return self

    async def _enter(self) -> None:
        async with AsyncExitStack() as exiting:
            url = self._url or await temporary_database(exiting, self.clock)
            if self._url is not None:
                await migrate(url, self.clock)
            exiting.enter_context(self.diverting(url))
            exiting.push_async_callback(self.app.aclose)
            self.client = await self.app.connect()
            self.store = self.client.store
            config, meters = self.config, self.app.meters
            self.reaper = EagerReaper(self.store, config.reaper, meters)
            self.planner = Planner(self.store, self.app.registry.schedules.providers, config.poll, meters)
            self.promoter = Promoter(self.store, config.poll, meters)
            self.conductor = ReplicaConductor(self.store, config.poll, meters)
            self.janitor = Janitor(self.store, config.janitor, meters)
            self.watchman = ExpectationWatcher(self.store, config.expect)
            await self.store.save_jobs(self.app.registry.definitions())
            declared = self.app.registry.schedules
            await declare_schedules(self.store, declared, declared.providers)
            self._exit = exiting.pop_all()

    async def __aexit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        async with self._exit:
            self.left_over = await self._runs_left()
            while self.workers:  # emptied, because the harness may be opened again
                await self.workers.pop(0).leave()
        self.left_over += tasks_left()

    @contextmanager
    def diverting(self, url: str) -> Iterator[None]:
        """Redirect what the app enqueues to this database until the block ends, also before the harness is open."""
        config = changed(self.app.config, {**self._settings, "database_url": url})
        with self.app.diverted(self._open, config=config):
            try:
                yield
            finally:
                self.app.close()

    async def _open(self) -> Client:
        database = open_database(self.config.database_url, self.clock, accepts_copies=True)
        store = Store(BreakableDatabase(database, self._outage))
        return Client(store, self.app.registry, self.config, self.app.meters)

    async def declare(self, name: str, /, **options: Any) -> None:
        """Declare a job that does nothing, for workers driven by hand; `options` are those of `@app.job(...)`."""

        async def nothing(**_payload: Any) -> None: ...

        self.app.job(**{**options, "name": name})(nothing)
        await self.store.save_jobs([self.app.registry.newest[name].definition])

    async def enqueue(
        self, job: str | Job[..., Any], options: Mapping[str, Any] | None = None, /, **payload: Any
    ) -> Enqueued:
        """Enqueue a run with `options`: `await harness.enqueue("report", {"delay": "10m"}, month=5)`."""
        name = job if isinstance(job, str) else job.name
        if self._declares and name not in self.app.registry.newest:
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
        """Return a new manual worker. The same name again is another worker, as after a restart."""
        config = changed(self.config, {"worker_labels": ",".join(labels) or None, "worker_version": version})
        worker = HandWorker(self.client, worker_info(self.app.registry, config, name, queues))
        self.workers.append(worker)
        return worker

    async def drain(self) -> Sequence[Run]:
        """Run everything that is due with the real worker; return the runs that ran."""
        try:
            return await drain_with(self.app, self._begun)
        finally:
            if self._draining is not None and self._draining.dead:
                self._dead.add(self._draining.info.id)
            self._draining = None

    def _begun(self, worker: MortalWorker) -> None:
        self._draining = worker

    async def pass_time(
        self, by: Duration | None = None, *, until: Moment | None = None, zone: str = "UTC"
    ) -> Sequence[Run]:
        """Let time pass, and do whatever is due on the way at its own time; return the runs that ran.

            await harness.pass_time("1d")
            await harness.pass_time(until="2030-03-31 03:30", zone="Europe/Berlin")

        Schedules are planned, delayed runs run, failed ones are retried, and runs of a dead worker are taken over.
        """
        end = self._end(by, until, zone)
        providers = list(self.app.registry.schedules.providers)

        async def act() -> Sequence[Run]:
            await self.reaper.step()
            return await self.drain()

        return await pass_through(
            lambda: next_moment(self.client, providers, self.clock.micros()),
            lambda at: self.clock.advance(timedelta(microseconds=at - self.clock.micros())),
            act,
            end,
        )

    def _end(self, by: Duration | None, until: Moment | None, zone: str) -> int:
        if (by is None) == (until is None):
            raise Invalid("how much time should pass?", hint='pass_time("1d"), or pass_time(until=…)')
        now = self.clock.micros()
        end = now + parse_duration(by) // timedelta(microseconds=1) if by is not None else moment(until or "", zone)
        if end < now:
            raise Invalid(f"{shown(end, zone)} is in the past: it is {shown(now, zone)}")
        return end

    def crash(self, *_: object, **__: object) -> NoReturn:
        """Kill the worker, here and now: for code that a handler calls while it is drained.

            monkeypatch.setattr(shop, "pay", harness.crash)

        Nothing more of this worker reaches the database, draining ends, and its runs stay as they are until their
        leases expire. A real crash would not even run `finally` blocks.
        """
        self._at_work("crash").die()
        raise Died

    def lose_lease(self, *_: object, **__: object) -> None:
        """Cut the worker off for longer than its leases, so that they are taken away and it learns of it.

        For code that a handler calls while it is drained, like `crash`. The clock advances by a lease and a second.
        """
        worker, lease = self._at_work("lose_lease"), self.lease
        held = dict(worker.held)
        self.clock.advance(lease + _SECOND)

        async def lose() -> None:
            client = await self._open()
            await EagerReaper(client.store, lease).step()
            worker.deliver(await Heartbeat(client.store, worker.info, held, lease).step())
            await client.close()

        loop = LoopThread()  # the caller may be on the event loop, where it must not block
        try:
            loop.call(lose())
        finally:
            loop.stop()

    def _at_work(self, verb: str) -> MortalWorker:
        if self._draining is None:
            raise Invalid(f"nothing is being drained: {verb}() is for code that a handler calls")
        return self._draining

    @contextmanager
    def database_away(self) -> Iterator[None]:
        """Make every access to the database raise `Unavailable`: `with harness.database_away():`."""
        self._outage.on = True
        try:
            yield
        finally:
            self._outage.on = False

    async def _runs_left(self) -> list[str]:
        expected = {*self._dead, *(worker.id for worker in self.workers)}
        under_way = await self.client.list(RunFilter(states=(RunState.RUNNING, RunState.CANCELLING)))
        return [f"run {run.id} of {run.job!r} is {run.state}" for run in under_way if run.worker_id not in expected]

    async def run(self, run: RunReference) -> Run:
        return await self.client.get(id_of(run))

    async def state(self, run: RunReference) -> RunState:
        return (await self.run(run)).state

    async def attempts(self, run: RunReference) -> Sequence[Attempt]:
        return await self.client.attempts(id_of(run))

    async def cancel(self, run: RunReference) -> Run:
        return await self.client.cancel(id_of(run))
