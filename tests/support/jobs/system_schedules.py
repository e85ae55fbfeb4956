"""An app whose schedules system tests let real workers plan; the environment selects which it declares."""

from __future__ import annotations

import asyncio
import os
import time

from rota import Context, Rota, cron, every
from tests.support.jobs.system_jobs import LEDGER, entered, turn

WANTED = "SYSTEM_TEST_SCHEDULES"

app = Rota()


@app.job
async def tick(ctx: Context) -> None:
    with entered(ctx):
        pass


@app.job(max_attempts=1)
def hang_at_first(ctx: Context) -> None:
    """The first one of all waits for its worker to be killed."""
    first = not os.path.exists(os.environ[LEDGER])
    with entered(ctx):
        time.sleep(60 if first else 0)


@app.job(max_attempts=50)
async def nap(ctx: Context, seconds: list[float]) -> None:
    with entered(ctx):
        await asyncio.sleep(turn(ctx, seconds))


@app.job(max_attempts=3, timeout="8s")
async def demo(ctx: Context, failing: bool = False) -> None:
    """Longer than its cadence, and listening; or failing at once, but for the third attempt."""
    with entered(ctx):
        if failing and ctx.attempt < 3:
            raise ValueError("not yet")
        for _ in range(0 if failing else 1_000):
            ctx.checkpoint()
            await asyncio.sleep(0.02)


wanted, _, count = os.environ.get(WANTED, "").partition(":")
if wanted == "ticks":
    for number in range(int(count)):
        app.schedule(f"tick{number}", tick, every("1s"), overlap="allow", catch_up="all")
elif wanted == "hang":
    app.schedule("hang", hang_at_first, every("1s"))
elif wanted == "demo":  # as the page has it that first said what the policies mean, with two seconds instead of five
    app.schedule(
        "demo-task",
        demo,
        cron("*/2 * * * * *"),
        payload={"failing": count == "failing"},
        max_concurrency=1,
        when_full="skip",
        overlap="cancel_previous",
        failure="retry",
        catch_up={"mode": "all", "keep": 3},
    )
