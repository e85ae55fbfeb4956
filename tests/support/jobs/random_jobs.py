"""Jobs of random cases for real workers: each attempt takes as long, and fails, as its case says.

The environment names the seeds of the cases, and a file that holds the instant (µs) from which plan times count.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from rota import Context, Rota
from rota.registry.jobs import Handler, declare
from rota.values.instants import micros_at
from tests.support.schedules.random_policies import RandomCase, draw

SEEDS, START = "TEST_SEEDS", "TEST_START"

app = Rota()


def handler_of(case: RandomCase) -> Callable[..., Awaitable[None]]:
    async def act_out(ctx: Context, at: str | None = None) -> None:
        assert ctx.plan_time is not None
        start = int(Path(os.environ[START]).read_text())  # noqa: ASYNC240  it is short
        attempt = (micros_at(ctx.plan_time) - start) // 1_000_000, ctx.scope.id, ctx.attempt
        await asyncio.sleep(case.behaviour.lasts(*attempt))
        if case.behaviour.fails(*attempt):
            raise RuntimeError("as the case says")

    return act_out


for seed in os.environ.get(SEEDS, "").split():
    drawn = draw(int(seed))
    declared = declare(handler_of(drawn), Context, {"name": drawn.name})
    app.registry.add(Handler(drawn.job, declared.fn, declared.payload))


@app.job
async def control() -> None:
    """Tell by when it begins whether the machine is busy."""
