"""The server beside its framework and its own store: what of their rate is left over HTTP, and what standing costs."""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import cpu
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.process import Process
from benchmarks.reports.report import percentile, table, thousands

MEASURES = ("enqueue", "bulk", "page", "idle")
DATABASES = ("sqlite", "postgres")
BARE = "bare"
_TITLES = {BARE: "Starlette alone", "sqlite": "rota on SQLite (NORMAL)", "postgres": "rota on PostgreSQL"}
_ONE = json.dumps({"job": "hello", "payload": {"name": "Ada"}})
_BULK_AT_ONCE = 4
_FEW = 1_000

Figures = dict[str, float]
Taken = dict[tuple[str, str], list[Figures]]
"""By measure and contender, one for each repetition."""


@dataclass(frozen=True)
class Plan:
    measures: list[str]
    databases: list[str]
    repeat: int
    requests: int
    concurrency: int
    runs: int
    batch: int
    rows: int
    pages: int
    clients: int
    seconds: float


def main(plan: Plan, file: Path | None) -> None:
    taken = asyncio.run(_measure(plan))
    print(_page(plan, taken))
    if file:
        file.write_text(json.dumps([[*key, figures] for key, figures in taken.items()]))


async def _measure(plan: Plan) -> Taken:
    taken: Taken = {}
    async with Cluster() as cluster:
        for measure in plan.measures:
            contenders = [BARE, *plan.databases] if measure == "enqueue" else plan.databases
            for run in range(plan.repeat + 1):
                for name in contenders[run % len(contenders) :] + contenders[: run % len(contenders)]:
                    figures = await _MEASURE[measure](cluster, plan, name)
                    told = "  ".join(f"{word} {value:,.2f}" for word, value in figures.items())
                    print(f"{measure:8} {'warm-up' if run == 0 else f'run {run}'}  {name:10}{told}", file=sys.stderr)
                    if run:
                        taken.setdefault((measure, name), []).append(figures)
    return taken


async def _enqueue(cluster: Cluster, plan: Plan, name: str) -> Figures:
    async with _server(cluster, name) as (server, port):
        facts = {"method": "POST", "path": "/api/v1/runs", "body": _ONE}
        seconds, _, used = await _asked(server, port, plan.requests, plan.concurrency, **facts)
        return {"per_s": plan.requests / seconds, "cpu_us": used / plan.requests * 1e6}


async def _bulk(cluster: Cluster, plan: Plan, name: str) -> Figures:
    with _database(cluster, name) as url:
        async with _child("bulk", url=url, n=plan.runs, batch=plan.batch) as process:
            await process.go()
            line = await process.line(300)
            own, own_cpu = line["took"], line["cpu"]
    async with _server(cluster, name) as (server, port):
        body = json.dumps({"runs": [json.loads(_ONE)] * plan.batch})
        facts = {"method": "POST", "path": "/api/v1/runs", "body": body}
        seconds, _, used = await _asked(server, port, plan.runs // plan.batch, _BULK_AT_ONCE, **facts)
    return {
        "store_per_s": plan.runs / own,
        "per_s": plan.runs / seconds,
        "share": own / seconds,
        "store_cpu_us": own_cpu / plan.runs * 1e6,
        "cpu_us": used / plan.runs * 1e6,
    }


async def _pages(cluster: Cluster, plan: Plan, name: str) -> Figures:
    found: Figures = {}
    for word, rows in (("few", _FEW), ("many", plan.rows)):
        with _database(cluster, name) as url:
            async with _child("fill", url=url, rows=rows) as process:
                await process.go()
                await process.hear("done", 1_800)
            async with _serving(url) as (server, port):
                facts = {"method": "GET", "path": "/api/v1/runs?limit=50"}
                await _asked(server, port, 20, 1, **facts)
                _, latencies, used = await _asked(server, port, plan.pages, 1, **facts)
        found |= {f"{word}_ms": percentile(latencies, 99) or 0.0, f"{word}_cpu_us": used / plan.pages * 1e6}
    return found


async def _idle(cluster: Cluster, plan: Plan, name: str) -> Figures:
    async with _server(cluster, name) as (server, port), _child("listen", port=port, clients=plan.clients) as listeners:
        await listeners.go()
        await listeners.hear("there")
        await asyncio.sleep(2)
        before = _used(server)
        await asyncio.sleep(plan.seconds)
        return {"percent": (_used(server) - before) / plan.seconds * 100}


_MEASURE = {"enqueue": _enqueue, "bulk": _bulk, "page": _pages, "idle": _idle}


async def _asked(
    server: Process, port: int, n: int, concurrency: int, **facts: str
) -> tuple[float, list[float], float]:
    """Seconds, the latency of each in ms, and the CPU seconds of the server's process."""
    async with _child("load", port=port, n=n, concurrency=concurrency, **facts) as process:
        before = _used(server)
        await process.go()
        line = await process.line(600)
        return line["took"], line["latencies_ms"], _used(server) - before


def _used(process: Process) -> float:
    return cpu.usage(None, [process.pid]).workers


@asynccontextmanager
async def _server(cluster: Cluster, name: str) -> AsyncIterator[tuple[Process, int]]:
    if name == BARE:
        async with _child("bare") as process:
            yield process, await process.hear("port")
        return
    with _database(cluster, name) as url:
        async with _serving(url) as found:
            yield found


@asynccontextmanager
async def _serving(url: str) -> AsyncIterator[tuple[Process, int]]:
    async with _child("rota", url=url) as process:
        yield process, await process.hear("port")


@contextmanager
def _database(cluster: Cluster, name: str) -> Iterator[str]:
    if name == "postgres":
        with cluster.database() as url:
            yield url
        return
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        yield f"sqlite:///{folder}/runs.db"


@asynccontextmanager
async def _child(role: str, **parameters: object) -> AsyncIterator[Process]:
    async with Process(
        [sys.executable, "-m", "benchmarks.children", "server", role, json.dumps(parameters)]
    ) as process:
        yield process


def _page(plan: Plan, taken: Taken) -> str:
    pages = {"enqueue": _enqueue_page, "bulk": _bulk_page, "page": _pages_page, "idle": _idle_page}
    head = [f"medians of {plan.repeat} alternating repetitions"]
    if plan.repeat < 5:
        head.append("fewer than five repetitions: for trying only")
    return "\n\n".join(["\n".join(head), *[pages[measure](plan, taken) for measure in plan.measures]])


def _enqueue_page(plan: Plan, taken: Taken) -> str:
    rows = []
    for name in (BARE, *plan.databases):
        found, bare = taken["enqueue", name], taken["enqueue", BARE]
        pairs = list(zip(found, bare, strict=True))
        share = statistics.median(one["per_s"] / other["per_s"] for one, other in pairs)
        of_cpu = statistics.median(other["cpu_us"] / one["cpu_us"] for one, other in pairs)
        facts = [thousands(_median(found, "per_s")), f"{share:.2f}", f"{_median(found, 'cpu_us'):.0f}", f"{of_cpu:.2f}"]
        rows.append([_TITLES[name], *facts, "" if name == BARE else _met(of_cpu >= 0.5)])
    columns = [f"POST /runs, {plan.concurrency} at a time", "requests/s", "share", "CPU µs", "share by CPU", "goal 0.5"]
    return table(columns, rows)


def _bulk_page(plan: Plan, taken: Taken) -> str:
    rows = []
    for name in plan.databases:
        found = taken["bulk", name]
        share = _median(found, "share")
        rates = [thousands(_median(found, word)) for word in ("store_per_s", "per_s")]
        used = [f"{_median(found, word):.1f}" for word in ("store_cpu_us", "cpu_us")]
        rows.append([_TITLES[name], *rates, f"{share:.2f}", *used, _met(share >= 0.7)])
    columns = [f"{plan.batch} runs a request", "the client's own/s", "over HTTP/s", "share", "own CPU µs", "CPU µs"]
    return table([*columns, "goal 0.7"], rows)


def _pages_page(plan: Plan, taken: Taken) -> str:
    rows = []
    for name in plan.databases:
        found = taken["page", name]
        few, many = _median(found, "few_ms"), _median(found, "many_ms")
        used = [f"{_median(found, word):.0f}" for word in ("few_cpu_us", "many_cpu_us")]
        rows.append([_TITLES[name], f"{few:.2f}", f"{many:.2f}", f"{many / few:.2f}", *used, _met(many <= 3 * few)])
    columns = ["GET /runs, 50 a page", f"p99 ms, {_FEW} runs", f"p99 ms, {plan.rows} runs", "ratio"]
    return table([*columns, "CPU µs, few", "CPU µs, many", "goal 3"], rows)


def _idle_page(plan: Plan, taken: Taken) -> str:
    rows = []
    for name in plan.databases:
        percent = _median(taken["idle", name], "percent")
        rows.append([_TITLES[name], f"{percent:.1f}", _met(percent < 10)])
    return table([f"{plan.clients} idle streams", "% of a core", "goal 10"], rows)


def _median(found: list[Figures], word: str) -> float:
    return statistics.median(one[word] for one in found)


def _met(well: bool) -> str:
    return "met" if well else "MISSED"
