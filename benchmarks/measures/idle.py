"""Counts the transactions of idle processes: so many workers or servers that have nothing to do."""

import asyncio
import json
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import machine
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.process import Process
from rota.store import Store, open_database

# Asked from another database, so that the question is not counted.
_TRANSACTIONS = "select xact_commit + xact_rollback from pg_stat_database where datname = $1"
KINDS = ("worker", "server")


@dataclass(frozen=True)
class Plan:
    processes: list[int]
    seconds: float
    settle: float


@dataclass(frozen=True)
class Count:
    """Transactions a minute and process: as PostgreSQL counts them, and by operation as the processes do."""

    kind: str
    processes: int
    by_server: float
    by_operation: dict[str, float]


def main(plan: Plan, path: Path | None) -> None:
    facts, counts = asyncio.run(_run(plan))
    if path:
        path.write_text(json.dumps({"facts": facts, "counts": [vars(count) for count in counts]}))
    print(page(plan, facts, counts))


async def _run(plan: Plan) -> tuple[dict[str, str], list[Count]]:
    async with Cluster(max_connections="500") as cluster:  # twenty processes have eleven each, at the start
        facts = await machine.facts(cluster)
        return facts, [await _count(cluster, plan, kind, number) for number in plan.processes for kind in KINDS]


async def _count(cluster: Cluster, plan: Plan, kind: str, number: int) -> Count:
    with cluster.database() as url:
        store = Store(open_database(url))
        await store.migrate()
        await store.close()
        async with AsyncExitStack() as stack:
            processes = [await stack.enter_async_context(_process(kind, url, place)) for place in range(number)]
            await asyncio.sleep(plan.settle)
            began, before, operations = time.monotonic(), await _total(cluster, url), await _operations(processes)
            await asyncio.sleep(plan.seconds)
            made, after = await _total(cluster, url) - before, await _operations(processes)
            share = 60 / (time.monotonic() - began) / number
    by_operation = {name: round(count * share, 1) for name, count in (after - operations).most_common()}
    return Count(kind, number, round(made * share, 1), by_operation)


def _process(kind: str, url: str, place: int) -> Process:
    parameters = json.dumps({"url": url, "name": f"{kind}-{place}"})
    return Process([sys.executable, "-m", "benchmarks.children", "idle", kind, parameters])


async def _total(cluster: Cluster, url: str) -> int:
    async with cluster.connect(cluster.server.url) as connection:
        return int(await connection.fetchval(_TRANSACTIONS, url.rpartition("/")[2].partition("?")[0]))


async def _operations(processes: list[Process]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for process in processes:
        await process.go()
        counts.update(await process.hear("counts"))
    return counts


def page(plan: Plan, facts: dict[str, str], counts: list[Count]) -> str:
    """Write the report, in Markdown."""
    lines = [f"# Idle processes, {plan.seconds:.0f} s each", "", *(f"- {name}: {fact}" for name, fact in facts.items())]
    lines += ["", "| idle | processes | transactions a minute and process | of which |", "|---|--:|--:|---|"]
    for count in counts:
        operations = ", ".join(f"{name} {number:g}" for name, number in count.by_operation.items())
        lines.append(f"| {count.kind} | {count.processes} | {count.by_server:g} | {operations} |")
    return "\n".join(lines)
