"""Runs the queue measures: every contender in turn, again and again, so that a noisy minute hits them all."""

import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness import machine, node
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.driver import Drained, Driver, NodeDriver
from benchmarks.measures import kinds
from benchmarks.peers import DRIVERS
from benchmarks.reports import report
from benchmarks.reports.report import Figures, Sample

WARM_SHARE = 0.05
SINGLE_SHARE = 0.04
FEW_FINISHED = 10_000
FAIR_JOBS = 100_000


@dataclass(frozen=True)
class Plan:
    runs: int
    jobs: int
    contenders: list[str]
    measures: list[str]
    finished: int
    samples: int
    seconds: float
    rate: int


@dataclass(frozen=True)
class Measure:
    take: Callable[[Driver, Plan], Awaitable[Figures]]
    suits: Callable[[type[Driver]], bool]
    once: bool = False
    """Long and compared with nobody: taken in the first repetition only."""


async def drain(driver: Driver, plan: Plan) -> Figures:
    """One worker process; filling the queue is the bulk enqueue."""
    n = jobs_of(driver, plan)
    filling = await driver.enqueue_bulk(n)
    await driver.settle()
    return {"bulk_per_s": n / filling, **_per_job(n, await driver.drain(n))}


async def drain_two(driver: Driver, plan: Plan) -> Figures:
    n = jobs_of(driver, plan)
    await driver.fill(n)
    return _per_job(n, await driver.drain(n, processes=2))


async def single(driver: Driver, plan: Plan) -> Figures:
    n = max(400, int(plan.jobs * SINGLE_SHARE))
    return {"per_s": n / await driver.enqueue_single(n)}


async def shared(driver: Driver, plan: Plan) -> Figures:
    """Not to be compared with `single`: eight callers of one client, which may commit for all of them at once."""
    n = max(400, int(plan.jobs * SINGLE_SHARE))
    return {"per_s": n / await driver.enqueue_single(n, shared=True)}


async def pickup(driver: Driver, plan: Plan) -> Figures:
    await driver.settle()
    return {"latencies_ms": await driver.pickup(plan.samples)}


async def sustained(driver: Driver, plan: Plan) -> Figures:
    """A small backlog means nothing if the jobs came slower than planned: `reached` tells."""
    done = await driver.sustain(plan.rate, plan.seconds)
    return {
        "reached": done.rate / plan.rate,
        "backlog_s": done.backlogs[-1] / plan.rate,
        "backlogs": [float(backlog) for backlog in done.backlogs],
    }


async def aged(driver: Driver, plan: Plan) -> Figures:
    """The cost of a job with few and with many finished rows in the tables, in the same database."""
    n = jobs_of(driver, plan)
    await driver.age(FEW_FINISHED)
    await driver.fill(n)
    few = _per_job(n, await driver.drain(n))
    await driver.age(plan.finished)
    await driver.fill(n)
    many = _per_job(n, await driver.drain(n))
    return {
        **{f"few_{word}": value for word, value in few.items()},
        **{f"many_{word}": value for word, value in many.items()},
    }


async def by_kind(driver: Driver, plan: Plan) -> Figures:
    """What limits, rates, keys and labels cost, and unique and idempotency keys in bulk."""
    return await kinds.take(driver, jobs_of(driver, plan))


def _on_postgresql(driver: type[Driver]) -> bool:
    return driver.database == "postgresql"


MEASURES: dict[str, Measure] = {
    "drain": Measure(drain, lambda driver: True),
    "drain2": Measure(drain_two, _on_postgresql),
    "single": Measure(single, _on_postgresql),
    "shared": Measure(shared, lambda driver: driver.name == "rota"),
    "pickup": Measure(pickup, _on_postgresql),
    "sustained": Measure(sustained, lambda driver: driver.name == "rota", once=True),
    "kinds": Measure(by_kind, lambda driver: driver.name in ("rota", "rota-sqlite")),
    "aged": Measure(aged, lambda driver: driver.name == "rota", once=True),
}


def jobs_of(driver: Driver, plan: Plan) -> int:
    return max(200, int(plan.jobs * driver.share))


def main(plan: Plan, path: Path | None) -> None:
    before = machine.load()
    facts, samples = asyncio.run(_run(plan))
    if plan.jobs < FAIR_JOBS:
        facts["few jobs"] = "the first claim is not counted, which favours large batches; for trying only"
    facts["load average"] = f"{before} before, {machine.load()} after"
    if path:
        path.write_text(json.dumps({"facts": facts, "plan": asdict(plan), "samples": list(map(asdict, samples))}))
    titles = {name: DRIVERS[name].title for name in plan.contenders}
    print(report.page(samples, facts, titles, kinds.section(report.Results(samples), titles)))


async def _run(plan: Plan) -> tuple[dict[str, str], list[Sample]]:
    async with Cluster() as cluster:
        facts = await _facts(plan, cluster)
        usable = [name for name in plan.contenders if await _warm(name, plan, cluster)]
        samples = [
            await _sample(run, measure, name, plan, cluster)
            for run in range(plan.runs)
            for measure in plan.measures
            for name in _turns(usable, run, measure)
        ]
    return facts, samples


def _turns(names: list[str], run: int, measure: str) -> list[str]:
    """Who takes part, each repetition beginning with another one."""
    wanted = MEASURES[measure]
    if wanted.once and run:
        return []
    turns = [name for name in names if wanted.suits(DRIVERS[name])]
    first = run % len(turns) if turns else 0
    return turns[first:] + turns[:first]


async def _warm(name: str, plan: Plan, cluster: Cluster) -> bool:
    """A short round that counts for nothing: caches fill, and a contender that cannot run here is left out."""
    small = Plan(**{**asdict(plan), "jobs": max(2000, int(plan.jobs * WARM_SHARE))})
    sample = await _sample(-1, "drain", name, small, cluster)
    if sample.error:
        print(f"left out: {name}: {sample.error}", file=sys.stderr)
    return sample.error is None


async def _sample(run: int, measure: str, name: str, plan: Plan, cluster: Cluster) -> Sample:
    try:
        async with _driver(name, cluster) as driver:
            await driver.prepare()
            figures = await MEASURES[measure].take(driver, plan)
    except Exception as error:
        print(f"{measure} of {name} failed: {error}", file=sys.stderr)
        return Sample(run, measure, name, {}, f"{type(error).__name__}: {error}")
    _tell(run, measure, name, figures)
    return Sample(run, measure, name, figures)


@asynccontextmanager
async def _driver(name: str, cluster: Cluster) -> AsyncIterator[Driver]:
    """A contender with a database of its own."""
    kind = DRIVERS[name]
    if kind.database == "sqlite":
        with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
            yield kind(f"sqlite:///{folder}/queue.db", cluster)
    else:
        with cluster.database() as url:
            yield kind(url, cluster)


def _per_job(n: int, drained: Drained) -> Figures:
    whole = drained.seconds * (os.cpu_count() or 1)
    return {
        "per_s": n / drained.seconds,
        "server_us": drained.used.server / n * 1e6,
        "worker_us": drained.used.workers / n * 1e6,
        "others_percent": 100 * drained.used.others / whole,
        "stolen_percent": 100 * drained.used.stolen / whole,
    }


def _tell(run: int, measure: str, name: str, figures: Figures) -> None:
    """Progress, for those who wait."""
    words = "  ".join(
        f"{word} {statistics.median(value) if isinstance(value, list) else value:,.1f}"
        for word, value in figures.items()
    )
    print(f"{'warm-up' if run < 0 else f'run {run + 1}'}  {measure:9}  {name:15}  {words}", file=sys.stderr)


async def _facts(plan: Plan, cluster: Cluster) -> dict[str, str]:
    facts = await machine.facts(cluster)
    if any(issubclass(DRIVERS[name], NodeDriver) for name in plan.contenders):
        try:
            facts["machine"] += f", {node.version()}"
        except (node.NodeMissingError, RuntimeError) as error:
            print(error, file=sys.stderr)
    return facts
