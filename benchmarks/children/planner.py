"""rota's planner in a measured process, on either database.

role     does                                                    says
plan     steps a planner for ever                                committed (when), runs (made by that step)
work     an engine with planner and worker                       started (when each handler began), once all have
idle     steps of a planner that has nothing to do               micros (each step's)
start    engines started and stopped, one after another          seconds (until the planner's first step is over)
outage   one step for a schedule that has long been forgotten    seconds
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from benchmarks.children.protocol import run_with_quick_loop, say, told_to_go
from benchmarks.harness.fleet import JOB, declared, fall_behind
from rota import Rota, cron, every
from rota.engine.engine import Engine
from rota.engine.loops.planner import Planner

CONCURRENCY = 100
WARM_STEPS = 50
YEAR = 365 * 86_400 * 1_000_000


def run(role: str, parameters: dict[str, Any]) -> None:
    roles: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
        "plan": _plan,
        "work": _work,
        "idle": _idle,
        "start": _start,
        "outage": _outage,
    }
    run_with_quick_loop(roles[role](**parameters))


async def _planner(app: Rota) -> Planner:
    """The caller keeps the app: its connections are closed with it."""
    client = await app.connect()
    return Planner(client.store, {}, client.config.poll)


async def _plan(url: str, singly: bool = False) -> None:
    app = declared(url)
    planner = await _planner(app)
    if singly:
        planner._store.planning.writers = 1
    await planner.step()
    await told_to_go()
    while True:
        before = planner.runs
        rest = await planner.step()
        if planner.runs > before:
            say(committed=time.time(), runs=planner.runs - before)
        await asyncio.sleep(rest.total_seconds())


async def _work(url: str, n: int) -> None:
    started: list[float] = []
    app = Rota(url, concurrency=CONCURRENCY)

    @app.job(name=JOB)
    async def noop(n: int = 0) -> None:
        started.append(time.time())

    await app.connect()
    await told_to_go()
    await app.start()
    while len(started) < n:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)  # one too many would come now
    say(started=started)
    await asyncio.Event().wait()


async def _idle(url: str, steps: int) -> None:
    app = declared(url)
    planner = await _planner(app)
    for _ in range(WARM_STEPS):
        await planner.step()
    await told_to_go()
    micros = []
    for _ in range(steps):
        begin = time.perf_counter()
        await planner.step()
        micros.append((time.perf_counter() - begin) * 1e6)
    say(micros=micros)


async def _start(url: str, times: int) -> None:
    await told_to_go()
    say(seconds=[await _one_start(url) for _ in range(times)])


async def _one_start(url: str) -> float:
    """Open, compare the schema, declare a job and a schedule, and let the planner take its first step."""
    stepped = asyncio.Event()

    class Noting(Planner):
        async def step(self) -> Any:
            rest = await super().step()
            stepped.set()
            return rest

    begin = time.perf_counter()
    app = declared(url)
    app.schedule("declared", JOB, every("30d"))
    client = await app.connect()
    engine = Engine(client.store, app.registry, app.config)
    engine._planner._steppable = Noting(client.store, app.registry.schedules.providers, app.config.poll)
    await engine.start()
    await stepped.wait()
    seconds = time.perf_counter() - begin
    await engine.stop()
    await app.aclose()
    return seconds


async def _outage(url: str, expression: str, timezone: str, catch_up: Literal["none", "latest", "all"]) -> None:
    app = declared(url)
    client = await app.connect()
    planner = await _planner(app)
    await planner.step()
    name = f"forgotten {timezone} {catch_up}"
    await client.schedules.create(name, JOB, cron(expression, timezone), catch_up=catch_up)
    await fall_behind(client.store.database, name, YEAR)
    await told_to_go()
    begin = time.perf_counter()
    await planner.step()
    seconds = time.perf_counter() - begin
    assert planner.runs, "nothing was planned"
    say(seconds=seconds, runs=planner.runs)
