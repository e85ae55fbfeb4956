"""Test faults of the harness: workers that die, leases that are lost, a database that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rota import Context, Invalid, Outcome, Rota, RunState, SyncContext, Unavailable
from rota.engine.engine import worker_info
from rota.testing import HandWorker, Harness, assert_enqueued
from tests.support.wait import PATIENCE

did: list[str] = []


async def nothing(*_: object) -> None: ...


class Shop:
    """Functions that the jobs below call, and tests replace."""

    pay: Callable[..., Any] = staticmethod(nothing)


app = Rota("sqlite:///unused.db")


@app.job
async def charge(ctx: Context, order: int) -> str:
    await ctx.step("reserve", did.append, f"reserved by attempt {ctx.attempt}")
    await ctx.step("pay", Shop.pay, order)
    did.append("paid")
    return "charged"


@app.job
def charge_in_a_thread(ctx: SyncContext, order: int) -> str:
    ctx.step("reserve", did.append, f"reserved by attempt {ctx.attempt}")
    try:
        asyncio.run(Shop.pay(order))
        ctx.checkpoint()
    except Exception:
        did.append("an error that it handles")
    did.append("paid")
    return "charged"


@app.job(on_lost="fail")
async def only_once() -> None:
    await Shop.pay()


@app.job
async def sleeper() -> None:
    did.append("asleep")
    await Shop.pay()
    if did.count("asleep") == 1:
        await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def _afresh() -> None:
    did.clear()


def once(act: Callable[[], object]) -> Callable[..., Any]:
    """The first call of it does that, the others nothing."""
    calls: list[object] = []

    async def pay(*_: object) -> None:
        calls.append(None)
        if len(calls) == 1:
            act()
            await asyncio.sleep(0)

    return pay


@pytest.mark.parametrize("job", [charge, charge_in_a_thread], ids=["coroutine", "thread"])
async def test_a_worker_that_dies_in_the_middle_is_succeeded(
    job: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with Harness(app) as harness:
        monkeypatch.setattr(Shop, "pay", once(harness.crash))
        run = await job.aenqueue(order=7)
        (left,) = await harness.drain()
        assert (left.state, left.attempt) == (RunState.RUNNING, 1)
        assert "failed" not in caplog.text  # the dead say nothing
        assert await harness.drain() == []  # its lease is not over
        (done,) = await harness.pass_time("1m")
        assert (done.id, done.result, done.attempt) == (run.id, "charged", 2)
        assert did == ["reserved by attempt 1", "paid"]  # the step that was done is not done again
        assert [attempt.outcome for attempt in await harness.attempts(run)] == [Outcome.LOST, Outcome.SUCCEEDED]
    assert harness.left_over == []


async def test_a_crash_takes_everything_with_it_that_the_worker_had(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Harness(app) as harness:
        monkeypatch.setattr(Shop, "pay", once(harness.crash))
        runs = [await charge.aenqueue(order=n) for n in range(3)]
        await harness.drain()
        assert [await harness.state(run) for run in runs] == [RunState.RUNNING] * 3
        await harness.pass_time("10m")
        assert [await harness.state(run) for run in runs] == [RunState.SUCCEEDED] * 3
        assert did.count("paid") == 3


async def test_a_crash_does_not_wait_for_what_else_the_worker_had(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Harness(app) as harness:
        run = await sleeper.aenqueue()
        await charge.aenqueue(order=1)
        monkeypatch.setattr(Shop, "pay", lambda *order: harness.crash() if order else nothing())
        async with asyncio.timeout(PATIENCE):
            await harness.drain()
        assert await harness.state(run) is RunState.RUNNING
        assert did == ["asleep", "reserved by attempt 1"]


async def test_a_handler_that_says_nothing_is_stopped_when_its_lease_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Harness(app, concurrency=1) as harness:  # else it claims the run anew, and learns of it that way
        monkeypatch.setattr(Shop, "pay", once(harness.lose_lease))
        run = await sleeper.aenqueue()
        async with asyncio.timeout(PATIENCE):
            await harness.drain()
        assert (await harness.run(run)).attempt == 2


async def test_what_must_not_begin_twice_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Harness(app) as harness:
        monkeypatch.setattr(Shop, "pay", harness.crash)
        run = await only_once.aenqueue()
        await harness.drain()
        await harness.pass_time("1h")
        assert await harness.state(run) is RunState.EXPIRED


@pytest.mark.parametrize("job", [charge, charge_in_a_thread], ids=["coroutine", "thread"])
async def test_a_handler_learns_that_its_lease_is_lost(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Harness(app) as harness:
        monkeypatch.setattr(Shop, "pay", once(harness.lose_lease))
        run = await job.aenqueue(order=7)
        before = harness.clock.now()
        (done,) = await harness.drain()
        assert harness.clock.now() - before > harness.lease
        assert (done.state, done.attempt) == (RunState.SUCCEEDED, 2)
        assert did[0] == "reserved by attempt 1"
        assert [attempt.outcome for attempt in await harness.attempts(run)] == [Outcome.LOST, Outcome.SUCCEEDED]
        assert did.count("paid") == (2 if job is charge_in_a_thread else 1)  # a thread that handles it goes on


async def test_a_database_that_is_away_comes_back() -> None:
    async with Harness(app) as harness:
        with harness.database_away():
            with pytest.raises(Unavailable, match="away"):
                await charge.aenqueue(order=1)
            with pytest.raises(Unavailable, match="away"):
                await asyncio.to_thread(charge.enqueue, order=1)
            with pytest.raises(Unavailable, match="away"):
                await harness.drain()
        await charge.aenqueue(order=2)
        assert_enqueued(charge, order=2, count=1)
        assert len(await harness.drain()) == 1


async def test_faults_are_for_code_that_a_handler_calls() -> None:
    async with Harness(app) as harness:
        with pytest.raises(Invalid, match="crash\\(\\) is for code that a handler calls"):
            harness.crash()
        with pytest.raises(Invalid, match="lose_lease\\(\\) is for"):
            harness.lose_lease()


async def test_what_is_left_is_told() -> None:
    async with Harness(app) as harness:
        run = await charge.aenqueue(order=1)
        await harness.worker("by hand").claim()
        other = await charge.aenqueue(order=2)
        await HandWorker(harness.client, worker_info(app.registry, app.config, "a stranger", None)).claim()
        task = asyncio.create_task(harness.client.wait(run.id), name="forgotten")
    task.cancel()
    assert [one.partition(" still ")[0] for one in harness.left_over] == [
        f"run {other.id} of 'charge' is running",
        "task forgotten",
    ]
