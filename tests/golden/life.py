"""Fills a database as its users would: `python life.py URL SCHEMA`, by the program that is on the path.

Each chapter uses what came with one schema version, so that every program since the first can be run through as much of
it as it knows. It imports nothing but rota.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import Any

from rota import Context, Rota
from rota.config import Config
from rota.testing import Harness, ManualClock

START = datetime(2030, 1, 1, 12, tzinfo=UTC)  # after the time in the runs' ids, which is the host's
ODD = "ö, \U0001f600, \\u0000 and a 'quote'"


def make_app(schema: int) -> Rota:
    app = Rota(config=Config())

    @app.job(max_attempts=3, backoff=["10m"])
    def upload(name: str, fail: bool = False) -> dict[str, Any]:
        if fail:
            raise ConnectionError(f"no way to {name}")
        return {"name": name, "text": ODD, "exact": 2**53 + 1}

    @app.job(max_attempts=1)
    def broken() -> None:
        raise ValueError(f"no luck with {ODD}")

    @app.job(queue="slow")
    def slow(name: str) -> str:
        return name

    @app.job(max_attempts=1, queue="slow")
    def hurried() -> None: ...

    if schema >= 2:
        chapter_of_schedules(app)
    if schema >= 3:
        chapter_of_control(app)
    if schema >= 4:
        chapter_of_work_elsewhere(app)
    return app


def chapter_of_schedules(app: Rota) -> None:
    from rota import every
    from rota.core.calendar.triggers import cron

    @app.job(max_concurrency=1)
    def narrow(name: str) -> str:
        return name

    app.schedule("minutely", "upload", every("1m"), payload={"name": "at {plan_time}"}, catch_up="all")
    app.schedule("shops", "upload", every("5m"), scopes=[("shop", "a"), ("shop", "b")], payload={"name": "{scope.id}"})
    app.schedule("hasty", "narrow", every("10s"), payload={"name": "hasty"}, catch_up="none")
    app.schedule("nightly", "upload", cron("0 3 * * *", "Europe/Berlin"), payload={"name": "night"})
    app.schedule("paused", "slow", every("1m"), payload={"name": "holiday"})


def chapter_of_control(app: Rota) -> None:
    @app.job(steps=["read", "write"], max_attempts=2, backoff=["10m"])
    async def stepped(ctx: Context, fail: bool = False) -> int:
        await ctx.step("read", _nothing)
        ctx.progress(50, summary="half")
        ctx.log.info("half of it, %s", ODD)
        if fail:
            raise ConnectionError("after the first step")
        await ctx.step("write", _nothing)
        return 1


def chapter_of_work_elsewhere(app: Rota) -> None:
    @app.job
    async def approve(ctx: Context) -> None:
        await ctx.wait_for_external("2d")

    @app.job(replicas=2)
    def twice() -> None: ...

    app.external("weigh")
    app.pipeline("publish", [{"step": "fetch", "job": "slow"}, {"step": "weigh", "job": "weigh"}])


async def _nothing() -> str:
    return "nothing"


async def live(url: str, schema: int) -> None:
    clock = ManualClock(START)
    async with Harness(make_app(schema), url, clock) as harness:
        await first_hours(harness)
        if schema >= 2:
            await with_schedules(harness)
        if schema >= 3:
            await under_control(harness)
        if schema >= 4:
            await work_elsewhere(harness)
        if schema >= 5:
            await with_strangers(harness)
        if schema >= 6:
            await counted(harness)
        await left_as_it_was(harness, schema)
        harness.workers.clear()  # they die with their leases, and say nothing


async def first_hours(harness: Harness) -> None:
    for number in range(6):
        await harness.enqueue("upload", {"tags": [f"no {number}"], "priority": number}, name=f"done {number}")
    await harness.enqueue("broken")
    cancelled = await harness.enqueue("upload", {"delay": "1h"}, name="cancelled")
    await harness.client.cancel(cancelled.id, reason="changed our mind")
    await harness.drain()
    failed = next(run for run in await harness.client.list() if run.job == "broken")
    await harness.client.retry(failed.id)
    late = await harness.enqueue("hurried")
    worker = await harness.worker("by-hand", queues=["slow"]).claim()
    await worker.time_out(late)
    harness.clock.advance("1m")
    await harness.drain()


async def with_schedules(harness: Harness) -> None:
    client = harness.client
    await client.schedules.pause("paused", reason="holiday")
    for _ in range(5):
        harness.clock.advance("1m")
        await harness.drain()
    await client.store.pause_queue("mail", "full", None)
    await client.schedules.trigger("nightly")
    harness.clock.advance("4m")  # nobody was there
    await harness.drain()
    await harness.janitor.step()


async def under_control(harness: Harness) -> None:
    await harness.enqueue("stepped")
    await harness.enqueue("stepped", fail=True)
    await harness.drain()


async def work_elsewhere(harness: Harness) -> None:
    client = harness.client
    await harness.enqueue("approve")
    await harness.enqueue("weigh")
    await harness.enqueue("weigh")
    await harness.drain()
    (claim,) = await client.external.claim("scales", jobs=["weigh"])
    await client.external.complete(claim.run_id, claim.fence, result={"kg": 3})
    first = await harness.enqueue("upload", {"delay": "10m"}, name="first")
    await harness.enqueue("upload", {"after": [first.id]}, name="follower")
    await harness.enqueue("upload", {"labels": ["gpu"]}, name="for some workers only")
    await harness.enqueue("twice")
    await harness.enqueue("publish", name="in parts")
    await harness.drain()


async def with_strangers(harness: Harness, name: str = "dash") -> None:
    client = harness.client
    await client.tokens.create(name, "viewer")
    await client.tokens.create(f"{name} of a shop", "enqueue", scope=("shop", "a"))
    await client.quotas.update("shop", "a", max_concurrency=5)
    await client.expectations.update("schedule", "nightly", success_every="25h")
    await client.notifications.create(f"pager of {name}", to="https://example.com/hook", on=["missed"])
    await harness.watchman.step()


async def counted(harness: Harness) -> None:
    from rota.engine.loops.chart_recorder import ChartRecorder

    recorder = ChartRecorder(harness.store, harness.app.meters, "golden")
    await harness.enqueue("upload", name="counted")
    await harness.drain()
    harness.clock.advance("1m")
    await recorder.step()


async def left_as_it_was(harness: Harness, schema: int) -> None:
    """Somebody pulled the plug: leases are held, runs wait, one has lost an attempt."""
    lost = await harness.enqueue("slow", name="lost once")
    await harness.worker("dead-before", queues=["slow"]).claim()
    harness.clock.advance(harness.lease + harness.lease)
    await harness.reaper.step()
    assert str(await harness.state(lost)) == "queued"
    for number in range(3):
        await harness.enqueue("slow", name=f"leased {number}")
    worker = await harness.worker("dead-now", queues=["slow"]).claim(2)
    await worker.heartbeat()
    await harness.client.cancel(next(iter(worker.claims)), reason="too late")
    await harness.enqueue("upload", name="backing off", fail=True)
    await harness.drain()
    await harness.enqueue("upload", {"idempotency_key": "once"}, name="once")
    await harness.enqueue("upload", {"delay": "30m"}, name="delayed")
    await harness.enqueue("upload", {"queue": "mail"}, name="queued")
    if schema >= 2:
        for number in range(3):
            await harness.enqueue("narrow", name=f"one at a time {number}")


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1], int(sys.argv[2])))
