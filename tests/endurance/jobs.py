"""The application under load: a job of each kind, kept for a minute, so that what is at rest has a size."""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import Any

from rota import Context, Order, Rota, SyncContext, every

KEPT = "1m"
FAILS = 3

app = Rota()


@app.job(keep_for=KEPT)
async def quick(ctx: Context, number: int) -> int:
    return number


@app.job(keep_for=KEPT)
def in_thread(ctx: SyncContext, seconds: float) -> None:
    time.sleep(seconds)


@app.job(keep_for=KEPT, max_attempts=FAILS + 1, backoff="1s")
async def flaky(ctx: Context, failures: int) -> None:
    if ctx.attempt <= failures:
        raise ConnectionError(f"attempt {ctx.attempt} of {failures + 1}")


@app.job(keep_for=KEPT, max_concurrency=2)
async def narrow(ctx: Context, seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.job(keep_for=KEPT)
async def stepped(ctx: Context) -> None:
    for name in ("fetch", "parse", "store"):
        await ctx.step(name, _nothing)
        await ctx.progress(0.5)


@app.job(keep_for=KEPT)
async def scheduled(ctx: Context) -> None:
    ctx.log.info("a line that is kept with the attempt")


async def _nothing() -> dict[str, Any]:
    return {"rows": 25}


app.schedule("each second", scheduled, every("1s"))


def draw(chance: Random, number: int) -> Order:
    """Draw an order: of each kind, some later, some under a key."""
    options: dict[str, Any] = {}
    if chance.random() < 0.1:
        options["delay"] = f"{chance.randint(100, 5_000)}ms"
    if chance.random() < 0.1:
        options["key"] = f"key-{chance.randint(1, 20)}"
    seconds = chance.uniform(0, 0.2)
    kinds: list[tuple[str, dict[str, Any]]] = [
        *[("quick", {"number": number})] * 5,
        ("in_thread", {"seconds": seconds}),
        ("narrow", {"seconds": seconds}),
        ("flaky", {"failures": chance.randint(0, FAILS)}),
        ("stepped", {}),
    ]
    job, payload = chance.choice(kinds)
    return Order(job, payload, options)
