"""Test the shield of steps that must not be cancelled: up with the first open step, down with the last."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from rota import Cancelled, Context, Outcome, RunState
from rota.core.progress.steps import StepOption, StepState
from rota.store.databases.database import Tx
from rota.testing import Harness
from tests.engine.handlers.test_steps import states_of
from tests.support.databases.unreliable_store import ShakyNotes, ShakyStore
from tests.support.runs.real_worker import Working
from tests.support.wait import forever, until

Start = Callable[..., Awaitable[Working]]

BOTH: list[StepOption] = [{"id": "a", "cancelable": False}, {"id": "b", "cancelable": False}]


async def shields_of(working: Working) -> tuple[list[int], list[int]]:
    """Return the shields in the database and in the worker's count."""

    async def body(tx: Tx) -> list[int]:
        return [
            int(row[0]) for row in await tx.fetch_sql("select case when shielded > 0 then 1 else 0 end from rota_lease")
        ]

    counted = [attempt.shields for attempt in working.worker.active.values()]
    return await working.harness.store.database.read(body), counted


async def test_one_that_is_refused_leaves_the_others_up(either: Harness, working: Start) -> None:
    reached, asked, refused, go_on = [asyncio.Event() for _ in range(4)]
    begun: list[str] = []

    async def transfer() -> str:
        reached.set()
        await go_on.wait()
        return "moved"

    async def late(ctx: Context) -> None:
        await asked.wait()
        with pytest.raises(Cancelled):
            await ctx.step("b", _note, begun, "b")
        refused.set()

    async def pay(ctx: Context) -> None:
        await asyncio.gather(ctx.step("a", transfer), late(ctx))

    either.app.job(steps=BOTH, cancel_grace="1s")(pay)
    run = await either.enqueue("pay")
    worker = await working(either, deaf=True)
    await until(reached.is_set)
    await either.cancel(run)
    asked.set()
    await until(refused.is_set)
    assert await shields_of(worker) == ([1], [1])
    either.clock.advance("3s")  # beyond its grace, within its lease
    await either.reaper.step()
    assert await either.state(run) is RunState.CANCELLING
    go_on.set()
    await worker.has_state(run, RunState.CANCELLED)
    assert await states_of(either, run) == {"a": StepState.SUCCEEDED, "b": StepState.SKIPPED}
    assert not begun


async def _note(seen: list[str], name: str) -> None:
    seen.append(name)


async def test_two_that_end_together_take_it_down(either: Harness, working: Start) -> None:
    ended = asyncio.Event()
    meeting = asyncio.Barrier(2)

    async def pay(ctx: Context) -> None:
        await asyncio.gather(ctx.step("a", _meet, meeting), ctx.step("b", _meet, meeting))
        ended.set()
        await forever()

    either.app.job(steps=BOTH, cancel_grace="60ms")(pay)
    run = await either.enqueue("pay")
    worker = await working(either)
    await until(ended.is_set)
    assert await shields_of(worker) == ([0], [0])
    await either.cancel(run)
    await worker.has_state(run, RunState.CANCELLED)
    assert [attempt.outcome for attempt in await either.attempts(run)] == [Outcome.CANCELLED]


async def _meet(barrier: asyncio.Barrier) -> None:
    await barrier.wait()


async def by_a_timeout(ctx: Context) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await ctx.step("a", forever)


async def by_a_sibling(ctx: Context) -> None:
    begun = asyncio.Event()

    async def transfer() -> None:
        begun.set()
        await forever()

    async def fail() -> None:
        await begun.wait()
        raise LookupError

    with contextlib.suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.step("a", transfer))
            group.create_task(fail())


@pytest.mark.parametrize("interrupted", [by_a_timeout, by_a_sibling])
async def test_one_that_its_own_handler_interrupts_takes_it_down(
    either: Harness, working: Start, interrupted: Callable[[Context], Awaitable[None]]
) -> None:
    went_on = asyncio.Event()

    async def pay(ctx: Context) -> None:
        await interrupted(ctx)
        went_on.set()
        await forever()

    either.app.job(steps=BOTH, cancel_grace="1s")(pay)
    run = await either.enqueue("pay")
    worker = await working(either, deaf=True)  # it does not hear of the cancel: the reaper must act
    await until(went_on.is_set)

    async def are_down() -> bool:
        return await shields_of(worker) == ([0], [0])

    await until(are_down)
    await either.cancel(run)
    either.clock.advance("2s")
    await either.reaper.step()
    assert await either.state(run) is RunState.CANCELLED


class LateShield(ShakyNotes):
    """The shield is up, but nobody hears of it."""

    def __init__(self, store: ShakyStore) -> None:
        super().__init__(store)
        self.is_up, self.go_on = asyncio.Event(), asyncio.Event()

    async def shield(self, run_id: str, fence: int, no: int, *, another: bool = False) -> bool | None:
        answer = await super().shield(run_id, fence, no, another=another)
        self.is_up.set()
        await self.go_on.wait()
        return answer


async def test_one_that_is_interrupted_while_it_goes_up_is_down_again(either: Harness, working: Start) -> None:
    store = ShakyStore(either.store)
    late = store.notes = LateShield(store)
    went_on = asyncio.Event()

    async def pay(ctx: Context) -> None:
        opening = asyncio.create_task(ctx.step("a", forever))
        await late.is_up.wait()
        opening.cancel()
        late.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        went_on.set()
        await forever()

    either.app.job(steps=BOTH)(pay)
    await either.enqueue("pay")
    worker = await working(either, store=store)
    await until(went_on.is_set)

    async def is_down() -> bool:
        return await shields_of(worker) == ([0], [0])

    await until(is_down)


async def test_a_handler_that_swallows_the_refusal_is_interrupted(either: Harness, working: Start) -> None:
    reached, asked, stopped = [asyncio.Event() for _ in range(3)]

    async def pay(ctx: Context) -> None:
        reached.set()
        await asked.wait()
        with pytest.raises(Cancelled):
            await ctx.step("a", asyncio.sleep, 0)
        try:
            await forever()
        finally:
            stopped.set()

    either.app.job(steps=BOTH, cancel_grace="90ms")(pay)
    run = await either.enqueue("pay")
    worker = await working(either, deaf=True)  # only the refusal tells it of the cancel
    await until(reached.is_set)
    await either.cancel(run)
    asked.set()
    await until(stopped.is_set)
    await worker.has_state(run, RunState.CANCELLED)
    assert [attempt.outcome for attempt in await either.attempts(run)] == [Outcome.CANCELLED]
