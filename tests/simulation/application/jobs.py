"""The simulated application: a few jobs, whose handlers do what their payload says and keep a diary of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from rota.app import Rota
from rota.config import Config
from rota.core.progress.control_flow import Retry
from rota.engine.handlers.context import Context
from rota.registry.jobs import Registry
from tests.simulation.application import coordination_jobs, pipelines, steps
from tests.simulation.application.data_jobs import DATA_JOBS
from tests.simulation.application.steps import MOST_SNOOZES, SHORT, SIGNALS
from tests.simulation.world.loop import CURRENT

if TYPE_CHECKING:
    from tests.simulation.world.processes import Process

_STEP = 0.25
_PROVIDER_TROUBLE = 0.1

# What the checks know of each job, besides what it declares to rota.
JOBS: dict[str, dict[str, Any]] = {
    "plain": {"max_attempts": 4, "backoff": "2s"},
    "hasty": {"max_attempts": 3, "backoff": ["1s", "3s"], "priority": 5, "queue": "fast"},
    "once": {"max_attempts": 1, "on_lost": "fail"},
    "careful": {"max_attempts": 3, "backoff": "1s", "on_lost": "fail"},
    "timed": {"max_attempts": 2, "backoff": "1s", "timeout": "3s", "cancel_grace": "2s"},
    "narrow": {"max_attempts": 3, "backoff": "1s", "max_concurrency": 2},
    "keyed": {"max_attempts": 3, "backoff": "1s", "limit": {"max": 1, "by": ["scope"]}},
    "nested": {"max_attempts": 3, "backoff": "1s", "max_concurrency": 2, "limit": {"max": 1, "by": ["scope"]}},
    "fleeting": {"max_attempts": 2, "backoff": "1s", "keep": 1, "keep_for": "5s"},
    "planned": {"max_attempts": 2, "backoff": "2s", "cancel_grace": "3s"},
    "brief": {"max_attempts": 2, "backoff": "2s", "keep": 2, "keep_for": "5s"},
    "stepped": {
        "max_attempts": 4,
        "backoff": "1s",
        "cancel_grace": "3s",
        "steps": [
            "fetch",
            {"id": "sign", "cancelable": False},
            {"id": "pay", "cancelable": False},
            {"id": "ship", "cancelable": False, "timeout": "5s"},
            {"id": "store", "timeout": "4s"},
        ],
    },
    "loose": {"max_attempts": 3, "backoff": "1s", "timeout": "9s", "cancel_grace": "2s"},
    "payer": {"max_attempts": 4, "backoff": "1s", "cancel_grace": "3s"},
    **coordination_jobs.JOBS,
    **pipelines.PIPELINES,
    **DATA_JOBS,
}
STEPPED = ("stepped", "loose", "payer")
"""Jobs whose handlers work in steps."""


def is_shielded(job: str, step: str) -> bool:
    """Whether a cancel waits for it."""
    return any(
        one["id"] == step and not one.get("cancelable", True)
        for one in JOBS[job].get("steps", ())
        if isinstance(one, dict)
    )


_SIGNALS: dict[str, Callable[[], Exception]] = {**SIGNALS, "retry": lambda: Retry(after="2s")}


@cache
def registry() -> Registry:
    """Handlers find the world that they are in by their node, so one registry serves all."""
    app = Rota(config=Config())
    for name, options in JOBS.items():
        if name not in coordination_jobs.EXTERNAL and name not in pipelines.PIPELINES and name not in DATA_JOBS:
            app.job(**{**options, "name": name})(act_out)
    for name, options in coordination_jobs.EXTERNAL.items():
        app.external(name, **options)
    for name, options in pipelines.PARTS.items():
        app.job(**{**options, "name": name})(_handle_part)
    for name, options in pipelines.PIPELINES.items():
        app.pipeline(name, pipelines.declared(), **options)
    app.scopes("tenants")(_tenants)
    return app.registry


async def _tenants() -> list[tuple[str, str]]:
    """One is always there, one comes and goes, and at times nobody can tell."""
    process: Process = CURRENT.get()  # type: ignore[assignment]
    await asyncio.sleep(process.random.random() / 10)
    seconds = process.world.loop.time()
    if process.world.healed_at is None and process.random.random() < _PROVIDER_TROUBLE:
        raise ConnectionError("the list of tenants cannot be read")
    return [("tenant", "a"), *([("tenant", "b")] if int(seconds / 8) % 2 else [])]


async def act_out(ctx: Context, n: int, acts: list[str]) -> dict[str, int]:
    process: Process = CURRENT.get()  # type: ignore[assignment]
    diary = process.world.diary
    act = acts[min(ctx.attempt, len(acts)) - 1]
    diary.began(process, ctx, n, act)
    try:
        await (steps.perform if ctx.job in STEPPED else _perform)(process, ctx, act)
    except BaseException as error:
        diary.stopped(process, ctx, type(error).__name__)
        raise
    diary.returned(process, ctx)
    return {"fence": ctx.fence, "attempt": ctx.attempt}


async def _handle_part(ctx: Context, n: int, acts: list[str], place: int, got: Any = None) -> dict[str, int]:
    """`ok:1/raise:1/ok:2`: what is done in each part."""
    process: Process = CURRENT.get()  # type: ignore[assignment]
    pipelines.begins(process, ctx, place, got)
    result = await act_out(ctx, n, [act.split("/")[place] for act in acts])
    pipelines.gives(process, ctx, result)
    return result


async def _perform(process: Process, ctx: Context, act: str) -> None:
    diary = process.world.diary
    word, _, amount = act.partition(":")
    seconds = float(amount or 0)
    if process.world.healed_at is not None:  # how long it all takes shall depend on rota
        seconds = min(seconds, SHORT)
    if word == "stubborn":
        await _ignoring_cancellation(seconds)
    elif word == "polite":
        await _at_checkpoints(ctx, seconds)
    else:
        await asyncio.sleep(seconds)
    if word in coordination_jobs.HAND_OVER:
        await coordination_jobs.hand_over(process, ctx, word)
    diary.effect(process, ctx)
    if word == "crash" and process.world.healed_at is None:
        process.world.kill(process)
        await asyncio.get_running_loop().create_future()
    if word == "snooze" and diary.begun[ctx.run_id] > MOST_SNOOZES:
        return
    if word in _SIGNALS:
        signal = _SIGNALS[word]()
        raise signal


async def _ignoring_cancellation(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        try:
            await asyncio.sleep(until - loop.time())
        except asyncio.CancelledError:
            continue


async def _at_checkpoints(ctx: Context, seconds: float) -> None:
    for _ in range(int(seconds / _STEP)):
        ctx.checkpoint()
        await asyncio.sleep(_STEP)
