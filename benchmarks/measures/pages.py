"""Measures what every question of the REST API costs beside a million runs that wait and a million that have ended."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from benchmarks.harness import cpu, machine
from benchmarks.harness.cluster import Cluster
from benchmarks.reports.report import table
from rota.client.client import Client
from rota.config import Config
from rota.core.jobs.job import JobDefinition
from rota.registry.jobs import Registry
from rota.store import Store, open_database
from rota.store.databases.database import Database
from rota.store.databases.postgres.postgres import PostgresDatabase
from tests.costs import crowd
from tests.costs.questions import LEFT_OUT, Subjects, ask, questions
from tests.support.runs.runs import LEASE_MICROS, WORK, WORKER

GOAL, LEAST = 50, 100  # milliseconds of CPU
JOBS = ("work", "waiting")
"""All ended runs of the crowd are of one job, all that wait of another."""


@dataclass(frozen=True)
class Plan:
    databases: list[str]
    rows: int
    repeat: int
    only: list[str]


@dataclass(frozen=True)
class Cost:
    """CPU milliseconds of an answer about this job: our process with all its threads, and PostgreSQL."""

    database: str
    question: str
    job: str
    process: float
    server: float

    @property
    def whole(self) -> float:
        return self.process + self.server


def main(plan: Plan, path: Path | None) -> None:
    facts, costs = asyncio.run(_run(plan))
    if path:
        path.write_text(json.dumps({"facts": facts, "plan": asdict(plan), "costs": [asdict(cost) for cost in costs]}))
    print(page(plan, facts, costs))


def page(plan: Plan, facts: dict[str, str], costs: list[Cost]) -> str:
    """Show the dearest first, of each question the job for which it is dearer."""
    worst: dict[tuple[str, str], Cost] = {}
    for cost in sorted(costs, key=lambda cost: cost.whole):
        worst[cost.database, cost.question] = cost
    dearest = sorted(worst.values(), key=lambda cost: -cost.whole)
    rows = [
        [cost.question, cost.job, cost.database, f"{cost.process:.1f}", f"{cost.server:.1f}", _verdict(cost.whole)]
        for cost in dearest
    ]
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    head = ["question", "about", "database", "process, ms", "PostgreSQL, ms", f"goal {GOAL}, at most {LEAST}"]
    return "\n".join([f"# Answers beside {plan.rows:,} runs", *lines, "", table(head, rows)])


def _verdict(milliseconds: float) -> str:
    return "reached" if milliseconds <= GOAL else "met" if milliseconds <= LEAST else "missed"


async def _run(plan: Plan) -> tuple[dict[str, str], list[Cost]]:
    costs: list[Cost] = []
    async with Cluster() as cluster:
        for database in plan.databases:
            async with _filled(database, cluster, plan.rows) as store:
                server = cluster.pid if database == "postgres" else None
                costs += await _costs(database, store, server, plan)
        return await machine.facts(cluster), costs


@asynccontextmanager
async def _filled(database: str, cluster: Cluster, rows: int) -> AsyncIterator[Store]:
    sizes = crowd.Sizes(waiting=rows, ended=rows, leased=1_000, schedules=1_000, limits=1_000, jobs=100, workers=10)

    async def fill(filled: Database) -> Store:
        store = Store(filled)
        await store.migrate()
        await store.save_jobs([WORK, JobDefinition(name="waiting")])
        await crowd.fill(store, sizes)
        await store.extend(WORKER, [], LEASE_MICROS)
        return store

    if database == "sqlite":
        with tempfile.TemporaryDirectory(prefix="rota-pages-") as folder:
            store = await fill(open_database(f"sqlite:///{folder}/rota.db"))
            yield store
            await store.close()
    else:
        with cluster.database() as url:
            store = await fill(PostgresDatabase(url, deadline=timedelta(hours=1)))
            await cluster.settle(url)
            yield store
            await store.close()


async def _costs(database: str, store: Store, server: int | None, plan: Plan) -> list[Cost]:
    client = Client(store, Registry(), Config())
    run = await store.database.read(
        lambda tx: tx.fetch_sql(
            "select max(run_id::text) from rota_attempt" if server else "select max(run_id) from rota_attempt"
        )
    )
    costs = []
    for name, verb in questions().items():
        if verb.verb.path in LEFT_OUT or (plan.only and name not in plan.only):
            continue
        for job in JOBS:
            if job != JOBS[0] and "{name}" not in name:
                continue
            about = Subjects(str(run[0][0]), job, "template", WORKER.id)
            process, used = await _cost(lambda: ask(client, verb, about), server, plan.repeat)  # noqa: B023
            costs.append(Cost(database, name, job, process, used))
    return costs


async def _cost(act: Callable[[], Awaitable[object]], server: int | None, repeat: int) -> tuple[float, float]:
    """Repeat until it is a second of CPU, at most `repeat` times: the kernel counts that of others in hundredths."""
    await act()
    count, began = 0, time.process_time()
    before = cpu.usage(server, [])
    while count < repeat and (count < 2 or time.process_time() - began < 1):
        await act()
        count += 1
    after = cpu.usage(server, [])
    return (time.process_time() - began) / count * 1e3, (after.server - before.server) / count * 1e3
