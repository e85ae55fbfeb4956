"""Test several shielded steps at once, and shielded steps that their handler gives up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from rota import Cancelled, Context, RunState
from rota.core.progress.notes import Notes
from rota.core.progress.steps import StepOption
from rota.testing import Harness
from tests.support.runs.real_worker import Working
from tests.support.wait import forever, until

Start = Callable[..., Awaitable[Working]]

SHIELDED: list[StepOption] = [{"id": id, "cancelable": False} for id in ("pay", "ship")]


async def shields(harness: Harness) -> list[int]:
    rows = await harness.store.database.read(
        lambda tx: tx.fetch_sql("select case when shielded > 0 then 1 else 0 end from rota_lease")
    )
    return [row[0] for row in rows]


async def test_two_that_end_at_the_same_time_leave_no_shield(either: Harness, working: Start) -> None:
    both, ended, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(ctx: Context) -> None:
        await asyncio.gather(ctx.step("pay", both.wait), ctx.step("ship", both.wait))
        ended.set()
        await go_on.wait()

    either.app.job(steps=SHIELDED)(work)
    run = await either.enqueue("work")
    worker = await working(either)
    await until(lambda: any(attempt.shields == 2 for attempt in worker.worker.active.values()))
    both.set()
    await until(ended.is_set)
    assert await shields(either) == [0]
    go_on.set()
    await worker.has_state(run, RunState.SUCCEEDED)


async def test_the_end_of_one_does_not_lift_the_shield_of_the_next(
    either: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, lifted, shipping, go_on = (asyncio.Event() for _ in range(4))

    async def ship() -> None:
        shipping.set()
        await go_on.wait()

    async def deliver(ctx: Context) -> None:
        await writing.wait()
        await ctx.step("ship", ship)

    async def work(ctx: Context) -> None:
        await asyncio.gather(ctx.step("pay", asyncio.sleep, 0), deliver(ctx))

    either.app.job(steps=SHIELDED)(work)
    run = await either.enqueue("work")
    notes = either.store.notes
    unshield = notes.unshield

    async def slowly(told: Notes, grace: int, no: int) -> set[tuple[str, int]]:
        writing.set()
        with contextlib.suppress(TimeoutError):  # it should not begin now, but if it did, this would be the moment
            await asyncio.wait_for(shipping.wait(), 0.1)
        gone = await unshield(told, grace, no)
        lifted.set()
        return gone

    monkeypatch.setattr(notes, "unshield", slowly)
    worker = await working(either)
    await until(lambda: lifted.is_set() and shipping.is_set())
    assert await shields(either) == [1]
    go_on.set()
    await worker.has_state(run, RunState.SUCCEEDED)


async def test_a_handler_that_gives_such_a_step_up_can_be_cancelled(either: Harness, working: Start) -> None:
    given_up = asyncio.Event()

    async def work(ctx: Context) -> None:
        try:
            async with asyncio.timeout(0.05):
                await ctx.step("pay", forever)
        except TimeoutError:
            given_up.set()
        await forever()

    either.app.job(steps=SHIELDED, cancel_grace=timedelta(milliseconds=30))(work)
    run = await either.enqueue("work")
    worker = await working(either)
    await until(given_up.is_set)

    async def unshielded() -> bool:
        return await shields(either) == [0]

    await until(unshielded)
    await either.cancel(run)
    await worker.has_state(run, RunState.CANCELLED)


async def test_whatever_else_goes_on_is_interrupted_when_such_a_step_is_refused(
    either: Harness, working: Start
) -> None:
    reached, go_on, refused = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def deliver(ctx: Context) -> None:
        reached.set()
        await go_on.wait()
        try:
            await ctx.step("ship", asyncio.sleep, 0)
        except Cancelled:
            refused.set()

    async def work(ctx: Context) -> None:
        await asyncio.gather(forever(), deliver(ctx))

    either.app.job(steps=SHIELDED, cancel_grace=timedelta(milliseconds=30))(work)
    run = await either.enqueue("work")
    # The worker has not heard of the cancel yet: the step is the first to.
    worker = await working(either, deaf=True)
    await until(reached.is_set)
    await either.cancel(run)
    go_on.set()
    await until(refused.is_set)
    await worker.has_state(run, RunState.CANCELLED)
