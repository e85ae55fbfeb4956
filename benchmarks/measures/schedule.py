"""Runs the measures of schedules: rota's planner beside APScheduler and BullMQ, again and again in turn."""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness import cpu, machine, node
from benchmarks.harness.cluster import Cluster
from benchmarks.harness.fleet import Fleet, Outcome, fleet
from benchmarks.harness.process import Process
from benchmarks.reports import schedule_report
from benchmarks.reports.report import Figures, Sample
from tests.support.servers import redis

FEW = 1_000
STARTS = 5
APSCHEDULER_SHARE = 0.2
CAP = 60.0
OUTAGES = (("UTC", "latest"), ("Europe/Berlin", "latest"), ("UTC", "all"))


@dataclass(frozen=True)
class Plan:
    measures: list[str]
    databases: list[str]
    repeat: int
    carried: int
    due: int
    history: int
    steps: int
    calls: int
    cases: int


class Bench:
    """The databases that the measures share, filled when the first of them asks."""

    def __init__(self, plan: Plan, cluster: Cluster, stack: AsyncExitStack) -> None:
        self.plan = plan
        self.cluster = cluster
        self._stack = stack
        self._fleets: dict[tuple[str, int], Fleet] = {}
        self.lead = 3.0

    async def fleet(self, database: str, carried: int) -> Fleet:
        found = self._fleets.get((database, carried))
        if found is None:
            print(f"filling  {database} with {carried:,} schedules", file=sys.stderr)
            found = await self._stack.enter_async_context(fleet(database, self.cluster, carried, self.plan.history))
            self._fleets[database, carried] = found
        return found

    async def armed(self, many: Fleet, *, own: bool = False, left: float = 0.5) -> int:
        """The second at which all are due; so many seconds are left until then."""
        while True:
            at = await many.arm(self.plan.due, self.lead, own=own)
            if at / 1e6 - time.time() > left:
                return at
            self.lead *= 1.5


def child(module: str, role: str, **parameters: object) -> Process:
    return Process([sys.executable, "-m", "benchmarks.children", module, role, json.dumps(parameters)])


async def fire(bench: Bench, database: str, *, planners: int = 1, own: bool = False, singly: bool = False) -> Figures:
    """All that is due becomes runs. The rate counts from the second at which they are due to the last commit."""
    many = await bench.fleet(database, bench.plan.carried)
    async with AsyncExitStack() as stack:
        planning = [child("planner", "plan", url=many.url, singly=singly) for _ in range(planners)]
        processes = [await stack.enter_async_context(process) for process in planning]
        at = await bench.armed(many, own=own)
        await asyncio.gather(*(process.go() for process in processes))
        before = await _usage_at(at, many.server, processes)
        latenesses, last = await _committed(processes, bench.plan.due, at / 1e6)
        used = cpu.usage(many.server, [process.pid for process in processes]) - before
    outcome = await many.outcome(bench.plan.due, at)
    return {
        **_fired(bench.plan.due, last - at / 1e6, used),
        "late_ms": latenesses,
        "created_ms": outcome.created_ms,
        **_faults(outcome),
    }


async def _committed(processes: list[Process], n: int, at: float) -> tuple[list[float], float]:
    """How late each run's commit was known, in ms, and when the last one was."""
    latenesses: list[float] = []
    last = at

    async def listen(process: Process) -> None:
        nonlocal last
        while True:
            line = await process.line()
            if "runs" in line:
                latenesses.extend([(line["committed"] - at) * 1e3] * line["runs"])
                last = max(last, line["committed"])

    listening = [asyncio.create_task(listen(process)) for process in processes]
    try:
        async with asyncio.timeout(300):
            while len(latenesses) < n:
                await asyncio.wait(listening, timeout=0.01, return_when=asyncio.FIRST_EXCEPTION)
                for task in listening:
                    if task.done():
                        task.result()
    finally:
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    return latenesses, last


async def fire_apscheduler(bench: Bench, database: str) -> Figures:
    """Its own due jobs and no others in the table, fewer of them: that is to its advantage."""
    n = max(100, int(bench.plan.due * APSCHEDULER_SHARE))
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder, bench.cluster.database() as postgres:
        url = postgres if database == "postgres" else f"sqlite:///{folder}/jobs.db"
        server = bench.cluster.pid if database == "postgres" else None
        async with child("apscheduler", "fire", url=url, n=n, cap=CAP) as process:
            return await _fires_of(process, server, n)


async def fire_bullmq(bench: Bench, _database: str) -> Figures:
    """As many as are due for rota, and no others."""
    with redis.server() as server:
        words = json.dumps({"port": server.port, "n": bench.plan.due, "cap": CAP})
        async with Process([node.node(), str(node.FOLDER / "bullmq.mjs"), words]) as process:
            return await _fires_of(process, server.pid, bench.plan.due)


async def _fires_of(process: Process, server: int | None, n: int) -> Figures:
    """Of a peer, whose schedules count as fired when their handlers are called."""
    await process.go()
    at = float(await process.hear("at", 600))
    before = await _usage_at(int(at * 1e6), server, [process])
    started = await process.hear("started", CAP + 60)
    used = cpu.usage(server, [process.pid]) - before
    return {
        **_fired(len(started), started[-1] - at, used),
        "late_ms": [(one - at) * 1e3 for one in started],
        "handled": float(len(started)),
        "asked": float(n),
    }


async def handled(bench: Bench, database: str) -> Figures:
    """An engine with a worker; on PostgreSQL a planner in another process besides."""
    many = await bench.fleet(database, bench.plan.carried)
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(child("planner", "work", url=many.url, n=bench.plan.due))
        processes = [worker]
        if database == "postgres":
            processes.append(await stack.enter_async_context(child("planner", "plan", url=many.url)))
        at = await bench.armed(many, left=1.5)
        await asyncio.gather(*(process.go() for process in processes))
        before = await _usage_at(at, many.server, processes)
        started = sorted(await worker.hear("started", 300))
        used = cpu.usage(many.server, [process.pid for process in processes]) - before
        window = time.time() - at / 1e6
    outcome = await many.outcome(bench.plan.due, at)
    return {
        **_fired(bench.plan.due, started[bench.plan.due - 1] - at / 1e6, used, window),
        "late_ms": [(one - at / 1e6) * 1e3 for one in started],
        **_faults(outcome),
        "twice": float(len(started) - bench.plan.due),
    }


async def idle(bench: Bench, database: str, carried: int) -> Figures:
    some = await bench.fleet(database, carried)
    async with child("planner", "idle", url=some.url, steps=bench.plan.steps) as process:
        await process.go()
        return {"micros": await process.hear("micros")}


async def start(bench: Bench, database: str, carried: int) -> Figures:
    some = await bench.fleet(database, carried)
    async with child("planner", "start", url=some.url, times=STARTS) as process:
        await process.go()
        return {"ms": [seconds * 1e3 for seconds in await process.hear("seconds")]}


async def outage(bench: Bench, database: str, timezone: str, catch_up: str) -> Figures:
    async with fleet(database, bench.cluster, 0) as none:
        every_second = {"expression": "* * * * * *", "timezone": timezone, "catch_up": catch_up}
        async with child("planner", "outage", url=none.url, **every_second) as process:
            await process.go()
            return {"ms": float(await process.hear("seconds")) * 1e3}


async def cron_speed(bench: Bench, _database: str) -> Figures:
    async with child("cron", "speed", calls=bench.plan.calls) as process:
        await process.go()
        return dict(await process.hear("micros"))


async def cron_oracle(bench: Bench, _database: str) -> Figures:
    async with child("cron", "oracle", count=bench.plan.cases, seed=time.time_ns()) as process:
        await process.go()
        line = await process.line(1800)
    for case in line["mismatches"]:
        print(f"cron differs from the oracle: {case}", file=sys.stderr)
    return {
        "cases": float(line["cases"]),
        "mismatches": float(len(line["mismatches"])),
        "longest_ms": float(line["longest_ms"]),
    }


Take = Callable[[Bench, str], Awaitable[Figures]]


def takes(measure: str, database: str, plan: Plan) -> dict[str, Take]:
    """The contenders of a measure by name; those of one measure take turns."""
    both = {str(FEW): FEW, "many": plan.carried}
    match measure:
        case "fire":
            usual: dict[str, Take] = {
                "apscheduler": fire_apscheduler,
                "rota": fire,
                "rota, own payloads": lambda bench, where: fire(bench, where, own=True),
                "rota, 2 planners": lambda bench, where: fire(bench, where, planners=2),
            }
            singly: dict[str, Take] = {
                schedule_report.SINGLE: lambda bench, where: fire(bench, where, singly=True),
                schedule_report.SINGLES: lambda bench, where: fire(bench, where, planners=2, singly=True),
            }
            bullmq: dict[str, Take] = {"bullmq": fire_bullmq} if redis.program() else {}
            return bullmq | usual | singly if database == "postgres" else usual
        case "handled":
            return {"rota": handled}
        case "idle":
            return {name: _with(idle, size) for name, size in both.items()}
        case "start":
            return {name: _with(start, size) for name, size in {"none": 0, "many": plan.carried}.items()}
        case "outage":
            return {f"{zone}, {mode}": _with(outage, zone, mode) for zone, mode in OUTAGES}
        case _:
            return {"speed": cron_speed, "oracle": cron_oracle}


MEASURES = ("fire", "handled", "idle", "start", "cron", "outage")


def _with(take: Callable[..., Awaitable[Figures]], *given: object) -> Take:
    return lambda bench, database: take(bench, database, *given)


def main(plan: Plan, path: Path | None) -> None:
    before = machine.load()
    facts, samples = asyncio.run(_run(plan))
    facts["load average"] = f"{before} before, {machine.load()} after"
    if path:
        path.write_text(json.dumps({"facts": facts, "plan": asdict(plan), "samples": list(map(asdict, samples))}))
    print(schedule_report.page(samples, facts, plan.databases))


async def _run(plan: Plan) -> tuple[dict[str, str], list[Sample]]:
    async with Cluster() as cluster, AsyncExitStack() as stack:
        bench = Bench(plan, cluster, stack)
        facts = {
            **await machine.facts(cluster),
            "for BullMQ": redis.version() if redis.program() else "left out, since neither Redis nor Valkey is here",
            "schedules": f"{plan.due:,} due at once, each with a history of {plan.history:,}; {plan.carried:,} carried",
        }
        samples = []
        for run in range(-1, plan.repeat):  # the first round counts for nothing
            for measure in plan.measures:
                for database in plan.databases if measure != "cron" else ["any"]:
                    samples += await _round(run, measure, database, bench)
    return facts, [sample for sample in samples if sample.run >= 0]


async def _round(run: int, measure: str, database: str, bench: Bench) -> list[Sample]:
    """Every contender once, each repetition beginning with another one."""
    contenders = list(takes(measure, database, bench.plan).items())
    first = run % len(contenders)
    turns = contenders[first:] + contenders[:first]
    return [
        await _sample(run, measure, database, name, take, bench)
        for name, take in turns
        if _takes_part(run, measure, name)
    ]


def _takes_part(run: int, measure: str, name: str) -> bool:
    """The first round is for databases that grow warm; comparing with brute force is done once."""
    if run < 0:
        return measure in ("fire", "handled") and name not in ("apscheduler", "bullmq")
    return run == 0 or name != "oracle"


async def _sample(run: int, measure: str, database: str, name: str, take: Take, bench: Bench) -> Sample:
    try:
        sample = Sample(run, f"{measure} {database}", name, await take(bench, database))
    except Exception as error:
        print(f"{measure} of {name} on {database} failed: {error}", file=sys.stderr)
        return Sample(run, f"{measure} {database}", name, {}, f"{type(error).__name__}: {error}")
    _tell(sample)
    return sample


async def _usage_at(at: int, server: int | None, processes: list[Process]) -> cpu.Usage:
    await asyncio.sleep(max(0.0, at / 1e6 - time.time() - 0.02))
    return cpu.usage(server, [process.pid for process in processes])


def _fired(n: int, seconds: float, used: cpu.Usage, window: float | None = None) -> Figures:
    """`window`: the seconds over which CPU was counted, if that is longer."""
    whole = (window or seconds) * (os.cpu_count() or 1)
    return {
        "per_s": n / seconds,
        "server_us": used.server / n * 1e6,
        "planner_us": used.workers / n * 1e6,
        "others_percent": 100 * used.others / whole,
        "stolen_percent": 100 * used.stolen / whole,
    }


def _faults(outcome: Outcome) -> Figures:
    return {
        "doubled": float(outcome.doubled),
        "missed": float(outcome.missed),
        "skipped": float(outcome.skipped),
    }


def _tell(sample: Sample) -> None:
    words = "  ".join(
        f"{word} {statistics.median(value) if isinstance(value, list) else value:,.1f}"
        for word, value in sample.figures.items()
    )
    run = "warm-up" if sample.run < 0 else f"run {sample.run + 1}"
    print(f"{run}  {sample.measure:16}  {sample.contender:20}  {words}", file=sys.stderr)
