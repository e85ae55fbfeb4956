"""The application under test: jobs of every kind, each with entries in the ledger, and schedules.

What a handler returns says under which fence it ran, so that a result can be compared with the fence it is recorded
under.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from rota import Context, Rota, SyncContext, cron, every
from tests.chaos.ledger import entered, write

BACKOFF = 0.5
AGAIN = f"{BACKOFF}s"
NARROW = 2
PATIENT = 200
"""Attempts of what may be lost again and again, and is to succeed in the end."""
ONE_AT_A_TIME = ("skipping", "queueing", "coalescing")
"""Schedules of which no two runs may be held at once."""
STEPS = ("fetch", "parse", "store")
LINGERS = 2.5
EFFECTS = "chaos_effect"
MAKE_EFFECTS = (
    f"create table if not exists {EFFECTS} (run_id text not null, fence integer not null, finishing integer not null)"
)

app = Rota()


def _length(ctx: Context | SyncContext, seconds: float = 0.0) -> float:
    """Later attempts take longer: so a worker that wakes up without its lease meets its successor at work."""
    return seconds if ctx.attempt == 1 else seconds + LINGERS


def _told(ctx: Context | SyncContext) -> dict[str, Any]:
    write("did", ctx)
    return {"fence": ctx.fence}


@app.job(backoff=AGAIN, max_attempts=PATIENT)
async def quick(ctx: Context, order: str) -> dict[str, Any]:
    with entered(ctx):
        await asyncio.sleep(_length(ctx))
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT)
def quick_in_thread(ctx: SyncContext, order: str) -> dict[str, Any]:
    with entered(ctx):
        time.sleep(_length(ctx))
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT)
async def slow(ctx: Context, order: str, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        await asyncio.sleep(_length(ctx, seconds))
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT)
def slow_in_thread(ctx: SyncContext, order: str, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        time.sleep(_length(ctx, seconds))
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT, isolation="process")
def slow_in_process(ctx: SyncContext, order: str, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        time.sleep(_length(ctx, seconds))
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT)
async def flaky(ctx: Context, order: str, failures: int) -> dict[str, Any]:
    with entered(ctx):
        if ctx.attempt <= failures:
            raise RuntimeError("not yet")
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=3)
def hopeless(ctx: SyncContext, order: str) -> None:
    with entered(ctx):
        raise RuntimeError("never")


@app.job(backoff=AGAIN, max_attempts=3, timeout="1s", cancel_grace="1s")
async def timed(ctx: Context, order: str, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        await asyncio.sleep(seconds if ctx.attempt == 1 else 0)
        return _told(ctx)


@app.job(max_attempts=1, on_lost="fail")
def once(ctx: SyncContext, order: str, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        time.sleep(seconds)
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=3, on_lost="fail")
def careful(ctx: SyncContext, order: str, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        time.sleep(seconds)
        if ctx.attempt == 1:
            raise RuntimeError("not yet")
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT, max_concurrency=NARROW)
async def narrow(ctx: Context, order: str, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        await asyncio.sleep(seconds)
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT, limit={"max": 1, "by": ["lane"]})
def keyed(ctx: SyncContext, order: str, lane: int, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        time.sleep(seconds)
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT, unique=["topic"])
async def unique(ctx: Context, order: str, topic: int, seconds: float) -> dict[str, Any]:
    with entered(ctx):
        await asyncio.sleep(seconds)
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT, steps=list(STEPS))
async def stepped(ctx: Context, order: str, seconds: float) -> dict[str, Any]:
    async def part(id: str) -> int:
        write("did", ctx, id)
        await asyncio.sleep(seconds)
        return ctx.fence

    with entered(ctx):
        for place, id in enumerate(STEPS, start=1):
            await ctx.step(id, part, id)
            if ctx.attempt == place == 1:
                raise RuntimeError("between two steps")
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT)
async def paying(ctx: Context, order: str, seconds: float) -> None:
    """Its row and the end of its run are one commit."""
    with entered(ctx):
        async with ctx.transaction() as tx:
            await tx.execute(f"insert into {EFFECTS} values ('{ctx.run_id}', {ctx.fence}, 1)")
            await asyncio.sleep(seconds)
            write("did", ctx)
            tx.finish({"fence": ctx.fence})


@app.job(backoff=AGAIN, max_attempts=PATIENT)
def dabbling(ctx: SyncContext, order: str) -> dict[str, Any]:
    """Its row is committed under its fence, and its run goes on."""
    with entered(ctx):
        with ctx.transaction() as tx:
            tx.execute(f"insert into {EFFECTS} values ('{ctx.run_id}', {ctx.fence}, 0)")
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT, cancel_grace="2s")
async def endless(ctx: Context, order: str) -> None:
    """Somebody has to cancel it."""
    with entered(ctx):
        while True:
            ctx.checkpoint()
            await asyncio.sleep(0.05)


@app.job(backoff=AGAIN, max_attempts=PATIENT)
async def probe(ctx: Context) -> dict[str, Any]:
    """Whether a worker works again when all is over."""
    with entered(ctx):
        return _told(ctx)


@app.job(backoff=AGAIN, max_attempts=PATIENT)
async def tick(ctx: Context, seconds: float = 0.0) -> dict[str, Any]:
    with entered(ctx):
        await asyncio.sleep(seconds)
        return _told(ctx)


app.schedule("ticking", tick, every("1s"), overlap="allow", catch_up="all")
app.schedule("skipping", tick, every("1s"), overlap="skip", payload={"seconds": 1.3})
app.schedule("queueing", tick, every("2s"), overlap="queue_all", catch_up="all", payload={"seconds": 0.5})
app.schedule("coalescing", tick, cron("*/3 * * * * *"), overlap="queue_one", catch_up="latest")
app.schedule("shops", tick, cron("*/2 * * * * *"), overlap="allow", scopes=[("shop", "a"), ("shop", "b")])
