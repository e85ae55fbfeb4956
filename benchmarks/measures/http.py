"""HTTP jobs beside the bare client: how much of its rate is left when each request is a run."""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.cluster import Cluster
from benchmarks.harness.process import Process
from benchmarks.reports.report import table, thousands

GOAL = 0.5
BARE = "aiohttp"
Took = tuple[float, float]
"""Requests a second, and µs of CPU that each took in the process that asked."""
_NAMES = {BARE: "aiohttp alone", "sqlite": "rota on SQLite", "postgres": "rota on PostgreSQL"}


@dataclass(frozen=True)
class Plan:
    requests: int
    concurrency: int
    repeat: int


def main(plan: Plan, file: Path | None) -> None:
    taken = asyncio.run(_measure(plan))
    print(_page(plan, taken))
    if file:
        file.write_text(json.dumps(taken))


async def _measure(plan: Plan) -> dict[str, list[Took]]:
    taken: dict[str, list[Took]] = {name: [] for name in _NAMES}
    async with Cluster() as cluster, _child("serve") as server:
        port = await server.hear("port")
        await server.go()
        for run in range(plan.repeat + 1):
            for name in _turns(run):
                rate, cpu = took = await _take(name, cluster, plan, port)
                told = f"{'warm-up' if run == 0 else f'run {run}'}  {name:10}  {rate:,.0f}/s  {cpu:,.0f} µs"
                print(told, file=sys.stderr)
                if run:
                    taken[name].append(took)
    return taken


def _turns(run: int) -> list[str]:
    names = list(_NAMES)
    return names[run % len(names) :] + names[: run % len(names)]


async def _take(name: str, cluster: Cluster, plan: Plan, port: int) -> Took:
    facts = {"port": port, "n": plan.requests, "concurrency": plan.concurrency}
    if name == BARE:
        async with _child("bare", **facts) as process:
            return await _heard(process, plan)
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder, cluster.database() as postgres:
        url = postgres if name == "postgres" else f"sqlite:///{folder}/jobs.db"
        async with _child("rota", url=url, **facts) as process:
            if name == "postgres":
                await cluster.settle(url)
            return await _heard(process, plan)


async def _heard(process: Process, plan: Plan) -> Took:
    await process.go()
    seconds, cpu = await process.hear("took", 300)
    return plan.requests / seconds, cpu / plan.requests * 1e6


@asynccontextmanager
async def _child(role: str, **parameters: object) -> AsyncIterator[Process]:
    async with Process([sys.executable, "-m", "benchmarks.children", "http", role, json.dumps(parameters)]) as process:
        yield process


def _page(plan: Plan, taken: dict[str, list[Took]]) -> str:
    rows = []
    for name, found in taken.items():
        share = statistics.median(took[0] / bare[0] for took, bare in zip(found, taken[BARE], strict=True))
        cpu_share = statistics.median(bare[1] / took[1] for took, bare in zip(found, taken[BARE], strict=True))
        rate, cpu = (statistics.median(took[place] for took in found) for place in (0, 1))
        met = "" if name == BARE else ("met" if share >= GOAL else "MISSED")
        rows.append([_NAMES[name], thousands(rate), f"{share:.2f}", f"{cpu:.0f}", f"{cpu_share:.2f}", met])
    head = f"{plan.requests} requests, {plan.concurrency} at a time, medians of {plan.repeat} alternating repetitions"
    return f"{head}\n\n{table(['HTTP', 'requests/s', 'share', 'CPU µs', 'share of CPU', f'goal {GOAL}'], rows)}"
