"""What is left of the rate after a fault: two workers as users start them, on a database of their own."""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.children.chaos import NAP, TOLD, app
from benchmarks.harness import cpu, machine
from benchmarks.harness.chaos_faults import FAULTS, Fault, Scene
from benchmarks.harness.cluster import Cluster
from benchmarks.reports import chaos_report
from benchmarks.reports.rates import WITHIN, recovery
from benchmarks.reports.report import Figures, Sample
from rota import Client, Config, Order, Unavailable
from rota.store import Store, open_database, open_store
from tests.chaos.cluster import Target
from tests.support.databases.network_proxy import Proxy, proxy_to
from tests.support.processes.rota_process import Processes

APP = "benchmarks.children.chaos:app"
WORKERS = 2
SLOTS = Config().concurrency
CONNECTIONS = "60"
"""Few enough for somebody to take them all."""
WARM = 3.0
PATIENCE = 120.0
BATCH = 1_000
ENQUEUE_EVERY = 0.05
BROOM_SLOTS = 200

_ENDED = "select id::text, state, finished_at / 1e6 as at from rota_run order by finished_at"
_LOST = "select distinct run_id::text as id from rota_attempt where outcome = 'lost'"


@dataclass(frozen=True)
class Plan:
    faults: list[str]
    repeat: int
    seconds: float

    def supply(self, fault: Fault) -> int:
        """Runs enough for all the time that is looked at, and some more."""
        return int(WORKERS * SLOTS / NAP * (WARM + self.seconds + fault.seconds + WITHIN + 5))


def main(plan: Plan, path: Path | None) -> None:
    before = machine.load()
    facts, samples = asyncio.run(_run(plan))
    facts["load average"] = f"{before} before, {machine.load()} after"
    if path:
        path.write_text(json.dumps({"facts": facts, "plan": asdict(plan), "samples": list(map(asdict, samples))}))
    print(chaos_report.page(samples, facts))


async def _run(plan: Plan) -> tuple[dict[str, str], list[Sample]]:
    async with Cluster(max_connections=CONNECTIONS) as cluster:
        facts = await machine.facts(cluster)
        facts["workers"] = (
            f"{WORKERS}, each with {SLOTS} slots and default settings, on a filled queue of naps of {NAP * 1e3:.0f} ms:"
            f" {WORKERS * SLOTS / NAP:.0f} runs/s can be done, whatever the CPU could"
        )
        facts["baseline"] = f"median second of the {plan.seconds:.0f} before the fault"
        samples = [await _sample(run, name, plan, cluster) for run in range(plan.repeat) for name in plan.faults]
    return facts, samples


async def _sample(run: int, name: str, plan: Plan, cluster: Cluster) -> Sample:
    try:
        with cluster.database() as url:
            async with _stage(FAULTS[name], cluster, url) as stage:
                figures = await stage.measure(plan)
    except Exception as error:
        print(f"{name} failed: {error!r}", file=sys.stderr)
        return Sample(run, "chaos", name, {}, f"{type(error).__name__}: {error}")
    words = "  ".join(f"{word} {value:,.2f}" for word, value in figures.items() if isinstance(value, float))
    print(f"run {run + 1}  {name:10}  {words}", file=sys.stderr)
    return Sample(run, "chaos", name, figures)


@asynccontextmanager
async def _stage(fault: Fault, cluster: Cluster, url: str) -> AsyncIterator["Stage"]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rota-bench-")))
        processes = stack.enter_context(Processes(folder, tells=False))
        proxy = stack.enter_context(proxy_to(url)) if fault.network else None
        store = Store(open_database(url))
        await store.migrate()
        await store.close()
        through = proxy.url if proxy else url
        client = Client(await open_store(through), app.registry, Config(database_url=through))
        stack.push_async_callback(client.close)
        await client.store.save_jobs(client.registry.definitions())
        yield Stage(fault, cluster, url, client, processes, proxy, folder / "told")


class Stage:
    """One fault, from a filled queue until all runs have ended."""

    def __init__(
        self,
        fault: Fault,
        cluster: Cluster,
        url: str,
        client: Client,
        processes: Processes,
        proxy: Proxy | None,
        told: Path,
    ) -> None:
        self._fault = fault
        self._cluster = cluster
        self._url = url
        self._client = client
        self._processes = processes
        self._through = proxy.url if proxy else url
        self._told = told
        self._acknowledged: set[str] = set()
        self._answers: list[tuple[float, float]] = []  # when each enqueue of the producer began, and was answered
        self._scene = Scene(cluster.server, url, [self._worker(f"worker-{n + 1}") for n in range(WORKERS)], proxy)

    def _worker(self, name: str, *flags: str) -> Target:
        environment = {"ROTA_DATABASE_URL": self._through, TOLD: str(self._told)}
        arguments = ["worker", "--name", name, *flags, APP]
        return Target(name, lambda: self._processes.rota(*arguments, environment=environment), f" runs {APP}", None)

    async def measure(self, plan: Plan) -> Figures:
        await self._fill(plan.supply(self._fault))
        workers = self._scene.workers
        await self._started(workers)
        producing = asyncio.create_task(self._produce())
        await asyncio.sleep(WARM)
        before = await self._others(plan.seconds)
        struck = time.time()
        await self._fault.strike(self._scene)
        healed = time.time()
        await self._cluster.look_again()
        starting = asyncio.create_task(self._all_ready())
        after = await self._others(WITHIN)
        producing.cancel()
        ended = [worker for worker in workers if worker.process.exit_code is not None]
        await self._sweep()
        instants, lost, held = await self._ends()
        found = recovery(instants, struck, healed, plan.seconds, part=self._fault.part)
        first = next((answered for began, answered in self._answers if began >= healed), None)
        return {
            "baseline": found.baseline / self._fault.part,
            "during": found.during,
            "share": found.share,
            "of_two": found.share * self._fault.part,
            "after_s": PATIENCE if found.after is None else found.after,
            "away_s": healed - struck,
            "enqueue_s": PATIENCE if first is None else first - healed,
            **({"ready_s": await starting - healed} if self._fault.kills else {}),
            **({"held_s": held - self._last_kill()} if held else {}),
            "lost": float(lost),
            "twice": float(self._twice()),
            "ended": float(len(ended) - (self._fault.part < 1)),
            "others_before": before,
            "others_after": after,
        }

    async def _fill(self, n: int) -> None:
        for _ in range(0, n, BATCH):
            for done in await self._client.enqueue_many([Order("nap", {})] * BATCH):
                self._acknowledged.add(done.id)
        await self._cluster.settle(self._url)

    async def _started(self, workers: list[Target]) -> None:
        for worker in workers:
            worker.start()
        for worker in workers:
            await asyncio.to_thread(worker.process.until_said, f" runs {APP}")

    async def _all_ready(self) -> float:
        """When all that live have said that they work."""
        while not all(worker.is_ready() or worker.lives[-1].until for worker in self._scene.workers):
            await asyncio.sleep(0.1)
        return time.time()

    def _last_kill(self) -> float:
        ends = [life.until for worker in self._scene.workers for life in worker.lives if life.until]
        return time.time() - time.monotonic() + max(ends, default=0.0)

    async def _produce(self) -> None:
        """One after the other; what could not be sent in time is not made up for."""
        while True:
            began = time.time()
            try:
                done = await self._client.enqueue(Order("nap", {}))
                self._acknowledged.add(done.id)
                self._answers.append((began, time.time()))
            except Unavailable:
                pass  # nobody has promised anything
            await asyncio.sleep(ENQUEUE_EVERY)

    async def _others(self, seconds: float) -> float:
        """Percent of the machine that others use while so much time goes by."""
        pids = [worker.process.pid for worker in self._scene.workers]
        before = cpu.usage(self._cluster.pid, pids)
        await asyncio.sleep(seconds)
        used = cpu.usage(self._cluster.pid, pids) - before
        return 100 * used.others / (seconds * (os.cpu_count() or 1))

    async def _sweep(self) -> None:
        """What is left in the queue is of no interest, only that it ends."""
        await self._started([self._worker("broom", "--concurrency", str(BROOM_SLOTS))])
        async with asyncio.timeout(PATIENCE), self._cluster.connect(self._url) as connection:
            while await connection.fetchval("select exists (select 1 from rota_run where state is null)"):
                await asyncio.sleep(0.2)

    async def _ends(self) -> tuple[list[float], int, float | None]:
        """When runs ended, in order; how many of those promised did not succeed; and when the last one that a killed
        worker held did."""
        async with self._cluster.connect(self._url) as connection:
            ended = {row["id"]: row for row in await connection.fetch(_ENDED)}
            held = [ended[row["id"]]["at"] for row in await connection.fetch(_LOST)]
        done = {id for id, row in ended.items() if row["state"] == "succeeded"} & set(self._told_ids())
        lost = sum(id not in done for id in self._acknowledged)
        return [float(row["at"]) for row in ended.values()], lost, float(max(held)) if held else None

    def _twice(self) -> int:
        return sum(times > 1 for times in Counter(self._told_ids()).values())

    def _told_ids(self) -> list[str]:
        return self._told.read_text().split()
