"""Runs the arenas: jobs come at a steady rate while transactions of others keep PostgreSQL from cleaning up."""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import asyncpg

from benchmarks.harness import machine
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.driver import Driver
from benchmarks.harness.process import Process
from benchmarks.peers import DRIVERS

QUERIES = 3
BATCH = 500
_DEAD = "select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_user_tables"
# A statement keeps its snapshot for as long as it runs, like a report that reads for minutes.
_QUERY = "select count(*), pg_sleep({seconds}) from pg_class"


@dataclass(frozen=True)
class Plan:
    arena: str
    contenders: list[str]
    rate: int
    seconds: float
    query_seconds: float


@dataclass(frozen=True)
class Moment:
    """Jobs sent and handled so far, and dead rows in all tables, so many seconds after the start."""

    at: float
    sent: int
    handled: int
    dead: int


@dataclass(frozen=True)
class Course:
    contender: str
    moments: list[Moment]

    def rates(self) -> list[float]:
        """Jobs handled a second, between two moments."""
        pairs = zip(self.moments, self.moments[1:], strict=False)
        return [(late.handled - early.handled) / (late.at - early.at) for early, late in pairs]


@asynccontextmanager
async def queries(cluster: Cluster, url: str, plan: Plan) -> AsyncIterator[None]:
    """Three queries at any time, each of them longer than the next one is away: some snapshot is always old."""

    async def ask(number: int) -> None:
        await asyncio.sleep(number * plan.query_seconds / QUERIES)
        async with cluster.connect(url) as connection:
            while True:
                await connection.execute(_QUERY.format(seconds=plan.query_seconds))

    tasks = [asyncio.create_task(ask(number)) for number in range(QUERIES)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def held(cluster: Cluster, url: str, _: Plan) -> AsyncIterator[None]:
    """One transaction that somebody forgot."""
    async with cluster.connect(url) as connection:
        await connection.execute("begin isolation level repeatable read")
        await connection.fetchval("select txid_current()")
        yield


Arena = Callable[[Cluster, str, Plan], AbstractAsyncContextManager[None]]
ARENAS: dict[str, tuple[Arena, int]] = {"queries": (queries, 800), "held": (held, 20_000)}
"""Each with the usual rate, in jobs a second."""


def main(plan: Plan, path: Path | None) -> None:
    before = machine.load()
    facts, courses = asyncio.run(_run(plan))
    facts["load average"] = f"{before} before, {machine.load()} after"
    if path:
        path.write_text(json.dumps({"facts": facts, "plan": asdict(plan), "courses": list(map(asdict, courses))}))
    print(page(plan, facts, courses))


async def _run(plan: Plan) -> tuple[dict[str, str], list[Course]]:
    async with Cluster() as cluster:
        facts = await machine.facts(cluster)
        courses = []
        for name in plan.contenders:
            with cluster.database() as url:
                courses.append(await _course(DRIVERS[name](url, cluster), plan))
    return facts, courses


async def _course(driver: Driver, plan: Plan) -> Course:
    n = int(plan.rate * plan.seconds)
    arena, _ = ARENAS[plan.arena]
    await driver.prepare()
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(driver.process("work"))
        batch = min(BATCH, max(1, plan.rate // 10))
        producer = await stack.enter_async_context(driver.process("bulk", n=n, batch=batch, rate=plan.rate))
        looking = await stack.enter_async_context(driver.cluster.connect(driver.url))
        await stack.enter_async_context(arena(driver.cluster, driver.url, plan))
        await worker.go()
        await producer.go()
        moments = await _moments(worker, producer, looking, plan.seconds)
    print(f"{driver.name}: {len(moments)} moments", file=sys.stderr)
    return Course(driver.name, moments)


async def _moments(
    worker: Process, producer: Process, looking: "asyncpg.Connection[asyncpg.Record]", seconds: float
) -> list[Moment]:
    counts = {"sent": 0, "handled": 0}

    async def follow(process: Process, word: str) -> None:
        while True:
            counts[word] = int(await process.hear(word, 2 * seconds + 60))

    tasks = [asyncio.create_task(follow(producer, "sent")), asyncio.create_task(follow(worker, "handled"))]
    begin, moments = time.monotonic(), list[Moment]()
    try:
        while (at := time.monotonic() - begin) < seconds:
            dead = int(await looking.fetchval(_DEAD))
            moments.append(Moment(round(at, 2), counts["sent"], counts["handled"], dead))
            await asyncio.sleep(1)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return moments


def page(plan: Plan, facts: dict[str, str], courses: list[Course]) -> str:
    """Write the report, in Markdown: how it was at ten moments, spread evenly."""
    lines = [f"# Arena: {plan.arena}, {plan.rate} jobs a second for {plan.seconds:.0f} s", ""]
    lines += [f"- {name}: {fact}" for name, fact in facts.items()]
    for course in courses:
        rates = course.rates()
        shown = range(0, len(rates), max(1, len(rates) // 10))
        lines += ["", f"## {course.contender}", "", "| s | handled/s | backlog | dead rows |", "|--:|--:|--:|--:|"]
        for place in shown:
            moment = course.moments[place + 1]
            backlog = moment.sent - moment.handled
            lines.append(f"| {moment.at:.0f} | {rates[place]:,.0f} | {backlog:,} | {moment.dead:,} |")
        if len(rates) > 1:
            lines += ["", f"handled/s: median {statistics.median(rates):,.0f}, {min(rates):,.0f} to {max(rates):,.0f}"]
    return "\n".join(lines)
