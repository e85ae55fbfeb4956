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

from bench.cluster import Cluster
from bench.process import Process
from bench.report import table, thousands

GOAL = 0.5
BARE = "aiohttp"
_NAMES = {BARE: "aiohttp alone", "sqlite": "rota on SQLite", "postgres": "rota on PostgreSQL"}


@dataclass(frozen=True)
class Plan:
    requests: int
    concurrency: int
    repeat: int


def main(plan: Plan, file: Path | None) -> None:
    rates = asyncio.run(_measure(plan))
    print(_page(plan, rates))
    if file:
        file.write_text(json.dumps(rates))


async def _measure(plan: Plan) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {name: [] for name in _NAMES}
    async with Cluster() as cluster, _child("serve") as server:
        port = await server.hear("port")
        await server.go()
        for run in range(plan.repeat + 1):
            for name in _turns(run):
                rate = await _rate(name, cluster, plan, port)
                print(f"{'warm-up' if run == 0 else f'run {run}'}  {name:10}  {rate:,.0f}/s", file=sys.stderr)
                if run:
                    rates[name].append(rate)
    return rates


def _turns(run: int) -> list[str]:
    names = list(_NAMES)
    return names[run % len(names) :] + names[: run % len(names)]


async def _rate(name: str, cluster: Cluster, plan: Plan, port: int) -> float:
    facts = {"port": port, "n": plan.requests, "concurrency": plan.concurrency}
    if name == BARE:
        async with _child("bare", **facts) as process:
            return await _seconds(process, plan)
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder, cluster.database() as postgres:
        url = postgres if name == "postgres" else f"sqlite:///{folder}/jobs.db"
        async with _child("rota", url=url, **facts) as process:
            if name == "postgres":
                await cluster.settle(url)
            return await _seconds(process, plan)


async def _seconds(process: Process, plan: Plan) -> float:
    await process.go()
    return plan.requests / float(await process.hear("seconds", 300))


@asynccontextmanager
async def _child(role: str, **parameters: object) -> AsyncIterator[Process]:
    async with Process([sys.executable, "-m", "bench.children", "http", role, json.dumps(parameters)]) as process:
        yield process


def _page(plan: Plan, rates: dict[str, list[float]]) -> str:
    rows = []
    for name, found in rates.items():
        shares = [rate / bare for rate, bare in zip(found, rates[BARE], strict=True)]
        share = statistics.median(shares)
        met = "" if name == BARE else ("met" if share >= GOAL else "MISSED")
        rows.append([_NAMES[name], thousands(statistics.median(found)), f"{share:.2f}", met])
    head = f"{plan.requests} requests, {plan.concurrency} at a time, medians of {plan.repeat} alternating repetitions"
    return f"{head}\n\n{table(['HTTP', 'requests/s', 'share', f'goal {GOAL}'], rows)}"
