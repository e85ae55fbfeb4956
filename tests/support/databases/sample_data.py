"""An installation that has been in use: its database contains something of every kind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rota import Context, Rota, every
from rota.config import Config
from rota.core.calendar.triggers import cron
from rota.errors import Unavailable
from rota.testing import Harness

FAR = "10m"


def make_app(did: list[str]) -> Rota:
    """`did` hears of everything that a handler does."""
    app = Rota(config=Config())

    @app.job(max_attempts=3, backoff=[FAR])
    def upload(name: str, fail: bool = False) -> str:
        did.append(name)
        if fail and did.count(name) == 1:
            raise Unavailable("not yet")
        return f"{name} with an ö, a \U0001f600 and a \\u0000"

    @app.job(max_attempts=1)
    def broken() -> None:
        raise ValueError("no luck")

    @app.job(steps=["read", "write"], unique=True)
    async def stepped(ctx: Context) -> int:
        await ctx.step("read", _nothing)
        ctx.progress(50, summary="half")
        ctx.log.info("half of it")
        await ctx.step("write", _nothing)
        return 1

    @app.job(max_concurrency=1)
    def narrow(name: str) -> None:
        did.append(name)

    @app.job
    async def approve(ctx: Context) -> None:
        await ctx.wait_for_external("2d")

    app.schedule("minutely", "upload", every("1m"), payload={"name": "at {plan_time}"}, catch_up="all")
    app.schedule("shops", "upload", every("5m"), scopes=[("shop", "a"), ("shop", "b")], payload={"name": "{scope.id}"})
    app.schedule("hasty", "narrow", every("10s"), payload={"name": "hasty"}, catch_up="none")
    app.schedule("nightly", "upload", cron("0 3 * * *", "Europe/Berlin"), payload={"name": "night"})
    return app


async def _nothing() -> None: ...


async def live(harness: Harness) -> dict[str, Any]:
    """Use the installation; return what to look for afterwards."""
    client, clock = harness.client, harness.clock
    await harness.enqueue("upload", name="done")
    for job in ("broken", "stepped", "approve"):
        await harness.enqueue(job)
    await client.quotas.update("shop", "a", max_concurrency=5)
    await client.tokens.create("dash", "viewer")
    await client.notifications.create("pager", to="https://example.com/hook", on=["missed"])
    await client.expectations.update("schedule", "nightly", success_every="25h")
    await client.schedules.pause("shops", reason="holiday")
    await client.pause_queue("mail", reason="full", force=True)
    for _ in range(3):
        clock.advance(timedelta(minutes=1))
        await harness.drain()
    await harness.store.workers.beat(harness.worker("gone").info)
    await harness.janitor.step()
    await harness.watchman.step()
    retried = await harness.enqueue("upload", name="retried", fail=True)
    await harness.drain()
    delayed = await harness.enqueue("upload", {"delay": FAR}, name="delayed")
    follower = await harness.enqueue("upload", {"after": [delayed.id]}, name="follower")
    once = await harness.enqueue("upload", {"idempotency_key": "once", "delay": FAR}, name="once")
    limited = [(await harness.enqueue("narrow", name=f"narrow-{n}")).id for n in range(3)]
    return {"retried": retried.id, "delayed": delayed.id, "follower": follower.id, "once": once.id, "narrow": limited}
