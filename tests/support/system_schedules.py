"""An application whose schedules system tests let real workers plan; the environment says which of them it declares."""

from __future__ import annotations

import asyncio
import os
import time

from rota import Context, Rota, every
from tests.support.system_jobs import LEDGER, entered, turn

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


wanted, _, count = os.environ.get(WANTED, "").partition(":")
if wanted == "ticks":
    for number in range(int(count)):
        app.schedule(f"tick{number}", tick, every("1s"), overlap="allow", catch_up="all")
elif wanted == "hang":
    app.schedule("hang", hang_at_first, every("1s"))
