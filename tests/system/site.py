"""Site of a system test: a database, real workers, a client, and a ledger that rota does not know."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from rota import Client, Config, Order, Outcome, Run, RunState, Unavailable
from rota.store import Store, open_database, open_store
from tests.support.jobs import system_jobs
from tests.support.jobs.system_jobs import LEDGER, Entry, Ledger
from tests.support.processes.rota_process import Processes, RotaProcess
from tests.support.wait import wait_for

LEASE, HEARTBEAT, REAPER, POLL = 1.5, 0.5, 0.3, 0.2
SETTINGS = {
    "ROTA_LEASE": f"{LEASE}s",
    "ROTA_HEARTBEAT": f"{HEARTBEAT}s",
    "ROTA_REAPER": f"{REAPER}s",
    "ROTA_POLL": f"{POLL}s",
    "ROTA_SHUTDOWN_GRACE": "10s",
}
APP = "tests.support.jobs.system_jobs:app"
GENEROUS = 100.0


class Site:
    def __init__(self, url: str, client: Client, processes: Processes, folder: Path) -> None:
        self.url = url
        self.client = client
        self.processes = processes
        self.ledger = Ledger(folder / "ledger")

    def environment(self, **settings: str) -> dict[str, str]:
        return {**SETTINGS, "ROTA_DATABASE_URL": self.url, LEDGER: str(self.ledger.path), **settings}

    def worker(
        self, name: str = "worker", settings: Mapping[str, str] | None = None, concurrency: int = 10
    ) -> RotaProcess:
        """Started, and claiming."""
        flags = ["--name", name, "--concurrency", str(concurrency)]
        environment = self.environment(**(settings or {}))
        return self.processes.rota("worker", *flags, APP, environment=environment).until_said(f" runs {APP}")

    def supervised(self, processes: int, concurrency: int) -> RotaProcess:
        """Start one command with so many worker processes, and wait until all of them claim."""
        flags = ["--processes", str(processes), "--concurrency", str(concurrency)]
        started = self.processes.rota("worker", *flags, APP, environment=self.environment())
        wait_for(lambda: started.log.count(f" runs {APP}") == processes)
        return started

    async def enqueue(self, job: str, options: Mapping[str, Any] | None = None, /, **payload: Any) -> str:
        return (await self.client.enqueue(Order(job, payload, options or {}))).id

    async def enqueue_many(self, count: int, job: str, **payload: Any) -> list[str]:
        return [done.id for done in await self.client.enqueue_many([Order(job, payload)] * count)]

    async def run(self, run_id: str) -> Run:
        return await self.client.get(run_id)

    async def outcomes(self, run_id: str) -> list[Outcome | None]:
        return [attempt.outcome for attempt in await self.client.attempts(run_id)]

    async def begun(self, run_id: str, times: int = 1) -> Entry:
        """The begin of that many attempts of a run, once it is in the ledger."""
        async with asyncio.timeout(GENEROUS):
            while len(begins := self.ledger.entries("begin", run_id)) < times:
                await asyncio.sleep(0.01)
        return begins[times - 1]

    async def final(self, run_id: str, seconds: float = GENEROUS) -> Run:
        return await self.client.wait(run_id, timedelta(seconds=seconds))

    async def all_succeed(self, run_ids: Iterable[str], seconds: float = GENEROUS) -> None:
        deadline = time.monotonic() + seconds
        for run_id in run_ids:
            run = await self.final(run_id, max(0.0, deadline - time.monotonic()))
            assert run.state is RunState.SUCCEEDED, run

    async def agree(self, run_ids: Iterable[str]) -> None:
        """The database and the ledger tell the same story of runs that succeeded."""
        begun = _fences(self.ledger.entries("begin"))
        ended = _fences(self.ledger.entries("end"))
        for run_id in run_ids:
            attempts = await self.client.attempts(run_id)
            fences = [attempt.fence for attempt in attempts]
            assert fences == sorted(set(fences)), "fences grow strictly"
            assert len(begun[run_id]) == len(set(begun[run_id])), "a fence begins once"
            assert set(begun[run_id]) <= set(fences), "what began was recorded"
            (success,) = [attempt for attempt in attempts if attempt.outcome is Outcome.SUCCEEDED]
            assert success.fence in ended[run_id], "what succeeded has ended"
            assert success is attempts[-1], "nothing comes after a success"

    def begins_once(self, run_ids: Sequence[str]) -> bool:
        return sorted(entry.run_id for entry in self.ledger.entries("begin")) == sorted(run_ids)


def _fences(entries: Iterable[Entry]) -> dict[str, list[int]]:
    fences: dict[str, list[int]] = {}
    for entry in entries:
        fences.setdefault(entry.run_id, []).append(entry.fence)
    return fences


@asynccontextmanager
async def opened(url: str, folder: Path, *, through: str | None = None) -> AsyncIterator[Site]:
    """A site on a fresh database; its workers reach it at `through`, if given, and the client directly."""
    await migrate(url)
    with Processes(folder) as processes:
        async with connected(url) as client:
            yield Site(through or url, client, processes, folder)


@asynccontextmanager
async def connected(url: str, deadline: float = 15.0) -> AsyncIterator[Client]:
    """A client in the tests' own process."""
    config = Config(database_url=url, deadline=timedelta(seconds=deadline))
    client = Client(await open_store(url, deadline=config.deadline), system_jobs.app.registry, config)
    await client.store.save_jobs(client.registry.definitions())
    try:
        yield client
    finally:
        await client.close()


async def migrate(url: str) -> None:
    store = Store(open_database(url))
    await store.migrate()
    await store.close()


class Producer:
    """Enqueues as fast as it is answered, and remembers what was acknowledged."""

    def __init__(self, client: Client, rest: float = 0.01) -> None:
        self.acknowledged: list[str] = []
        self.refused = 0
        self._client = client
        self._rest = rest
        self._stopping = False

    async def produce(self) -> None:
        while not self._stopping:
            try:
                done = await self._client.enqueue(Order("quick", {"number": len(self.acknowledged)}))
            except Unavailable:
                self.refused += 1
            else:
                self.acknowledged.append(done.id)
            await asyncio.sleep(self._rest)

    @asynccontextmanager
    async def producing(self, streams: int = 2) -> AsyncIterator[Producer]:
        async with asyncio.TaskGroup() as group:
            for _ in range(streams):
                group.create_task(self.produce())
            try:
                yield self
            finally:
                self._stopping = True
