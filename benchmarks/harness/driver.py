"""A contender, seen from the runner: the same verbs for all, each done by measured processes of its own."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import apsw

from benchmarks.harness import cpu
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.node import FOLDER, node
from benchmarks.harness.process import PATIENCE, Process, ProcessFailedError

BATCH = 1000
WARM_PICKUPS = 10

Look = Callable[[], Awaitable[object]]
"""Asks the database whether any job is not finished."""


@dataclass(frozen=True)
class Drained:
    seconds: float
    used: cpu.Usage


@dataclass(frozen=True)
class Sustained:
    """Jobs sent and not yet begun, about twice a second; and the rate at which they were really sent."""

    backlogs: list[int]
    rate: float


class Driver:
    """Subclasses give the facts; `--jobs` is multiplied by `share`, so that a slow peer does not take minutes."""

    name: str
    title: str
    database = "postgresql"
    share = 1.0
    batched = True
    """Takes part unless others are named; one that claims and completes each job by itself has to be."""
    child: str | None = None
    """The module in benchmarks/children, if it is not named like this driver."""
    unfinished: str
    """SQL: is any job not finished? Read once all handlers have been called, so it need not be cheap."""

    kind: str | None = None
    """The kind of jobs, for a contender that has several."""

    def __init__(self, url: str, cluster: Cluster) -> None:
        self.url = url
        self.cluster = cluster

    def command(self, role: str, parameters: dict[str, object]) -> list[str]:
        return [sys.executable, "-m", "benchmarks.children", self.child or self.name, role, json.dumps(parameters)]

    async def prepare(self) -> None:
        async with self.process("prepare") as process:
            await process.go()
            await process.hear("done")

    async def fill(self, n: int) -> None:
        await self.enqueue_bulk(n)
        await self.settle()

    async def settle(self) -> None:
        await self.cluster.settle(self.url)

    async def enqueue_bulk(self, n: int) -> float:
        """Seconds for n jobs in batches of a thousand, one producer."""
        async with self.process("bulk", n=n, batch=BATCH) as process:
            await process.go()
            return float(await process.hear("seconds"))

    async def bulk_usage(self, n: int, batch: int) -> cpu.Usage:
        """CPU used while a producer enqueues n jobs in batches, its start not counted."""
        async with self.process("bulk", n=n, batch=batch) as process:
            before = self._usage([process])
            await process.go()
            await process.hear("seconds")
            return self._usage([process]) - before

    async def enqueue_single(self, n: int, connections: int = 8, *, shared: bool = False) -> float:
        """Seconds for n jobs, each a commit of its own, from one process over that many connections.

        `shared` is for a client that gathers what its callers enqueue at one moment: it then commits for all of them.
        """
        async with self.process("single", n=n, connections=connections, shared=shared) as process:
            await process.go()
            return float(await process.hear("seconds"))

    async def drain(self, n: int, processes: int = 1) -> Drained:
        """From the first handler's start until the database says that nothing is left."""
        async with AsyncExitStack() as stack:
            workers = [await stack.enter_async_context(self.process("work")) for _ in range(processes)]
            looking = await stack.enter_async_context(self._look())
            await asyncio.gather(*(worker.go() for worker in workers))
            begin, before = await self._first(workers)
            await self._all_handled(workers, n)
            while await looking():
                await asyncio.sleep(0.002)
            end, after = time.monotonic(), self._usage(workers)
        return Drained(end - begin, after - before)

    async def pickup(self, samples: int, every: float = 0.05) -> list[float]:
        """Milliseconds from just before the enqueue to the handler's start, with an idle worker waiting."""
        wanted = WARM_PICKUPS + samples
        async with self.process("work") as worker, self.process("trickle", n=wanted, every=every) as producer:
            await worker.go()
            await asyncio.sleep(1.0)
            await producer.go()
            latencies = [float(await worker.hear("latency_ms")) for _ in range(wanted)]
        return latencies[WARM_PICKUPS:]

    async def sustain(self, rate: int, seconds: float, batch: int = 500) -> Sustained:
        """Jobs arrive at that rate, if they can be enqueued so fast, while a transaction stays open, doing nothing."""
        n = int(rate * seconds)
        async with AsyncExitStack() as stack:
            idle = await stack.enter_async_context(self.cluster.connect(self.url))
            worker = await stack.enter_async_context(self.process("work"))
            producer = await stack.enter_async_context(self.process("bulk", n=n, batch=batch, rate=rate))
            await idle.execute("begin isolation level repeatable read")
            await idle.fetchval("select txid_current()")
            await worker.go()
            await producer.go()
            begin = time.monotonic()
            backlogs = await _backlogs(producer, worker, n)
            return Sustained(backlogs, n / (time.monotonic() - begin))

    async def age(self, rows: int) -> None:
        """Put finished rows into the tables, as a busy year would."""
        raise NotImplementedError(f"{self.name} has no way to make finished rows")

    @asynccontextmanager
    async def _look(self) -> AsyncIterator[Look]:
        async with self.cluster.connect(self.url) as connection:
            statement = await connection.prepare(self.unfinished)
            yield statement.fetchval

    def process(self, role: str, **parameters: object) -> Process:
        kind = {"kind": self.kind} if self.kind else {}
        return Process(self.command(role, {"url": self.url, **kind, **parameters}))

    def _usage(self, workers: list[Process]) -> cpu.Usage:
        server = self.cluster.pid if self.database == "postgresql" else None
        return cpu.usage(server, [worker.pid for worker in workers])

    async def _first(self, workers: list[Process]) -> tuple[float, cpu.Usage]:
        """When the first handler of all began, and the CPU used by then."""
        firsts = [asyncio.create_task(worker.hear("first")) for worker in workers]
        done, _ = await asyncio.wait(firsts, return_when=asyncio.FIRST_COMPLETED)
        begin, before = min(task.result() for task in done) / 1e9, self._usage(workers)
        # A second worker may come too late to get any job; it is still told apart by its count.
        for task in firsts:
            if not task.done():
                task.cancel()
        await asyncio.gather(*firsts, return_exceptions=True)
        return begin, before

    async def _all_handled(self, workers: list[Process], n: int) -> None:
        handled = dict.fromkeys(workers, 0)
        enough = asyncio.Event()

        async def count(worker: Process) -> None:
            while True:
                handled[worker] = max(handled[worker], int(await worker.hear("handled", 10 * PATIENCE)))
                if sum(handled.values()) >= n:
                    enough.set()

        async with _background(*map(count, workers)) as tasks:
            waiting = asyncio.create_task(enough.wait())
            await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED, timeout=10 * PATIENCE)
            waiting.cancel()
            for task in tasks:
                if task.done():
                    task.result()
            if not enough.is_set():
                raise ProcessFailedError(f"{sum(handled.values())} of {n} jobs were handled")


class SqliteDriver(Driver):
    """One process is server and worker; the runner only reads."""

    database = "sqlite"

    async def settle(self) -> None:
        """Nothing to do: there is no server to collect statistics."""

    @asynccontextmanager
    async def _look(self) -> AsyncIterator[Look]:
        connection = apsw.Connection(self.url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(5000)

        async def look() -> bool:
            return bool(connection.execute(self.unfinished).get)

        try:
            yield look
        finally:
            connection.close()


class NodeDriver(Driver):
    """A contender in JavaScript: `script` in benchmarks/peers/node, with settings of its own."""

    script: str
    settings: ClassVar[dict[str, object]] = {}

    def command(self, role: str, parameters: dict[str, object]) -> list[str]:
        return [node(), str(FOLDER / self.script), role, json.dumps({**parameters, "settings": self.settings})]


@asynccontextmanager
async def _background(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[list["asyncio.Task[None]"]]:
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _backlogs(producer: Process, worker: Process, n: int) -> list[int]:
    counts = {"sent": 0, "handled": 0}

    async def follow(process: Process, word: str) -> None:
        while counts[word] < n:
            counts[word] = int(await process.hear(word))

    backlogs = []
    async with _background(follow(producer, "sent"), follow(worker, "handled")) as tasks:
        while counts["sent"] < n:
            await asyncio.sleep(0.5)
            for task in tasks:
                if task.done():
                    task.result()
            backlogs.append(counts["sent"] - counts["handled"])
    return backlogs
