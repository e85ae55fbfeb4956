"""Test `pass_time`: what is due on the way happens at its own time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rota import Context, Invalid, Rota, Run, RunState, SyncContext, after, cron, every
from rota.testing import BlockingHarness, Harness, ManualClock

BERLIN = "Europe/Berlin"


def at(run: Run) -> str:
    assert run.started_at is not None
    return f"{run.started_at:%m-%d %H:%M:%S}"


@pytest.fixture
def app() -> Rota:
    return Rota("sqlite:///unused.db")


async def test_each_plan_fires_at_its_own_time_across_a_gap(app: Rota, database_url: str) -> None:
    @app.job
    def report(plan: str) -> str:
        return plan

    app.schedule("nightly", report, cron("30 2 * * *", tz=BERLIN), payload={"plan": "{plan_time}"})
    clock = ManualClock("2030-03-30 12:00", zone=BERLIN)
    async with Harness(app, database_url, clock) as harness:
        runs = await harness.pass_time(until="2030-04-01 12:00", zone=BERLIN)
        assert [run.result for run in runs] == ["2030-03-31T01:00:00Z", "2030-04-01T00:30:00Z"]
        assert [at(run) for run in runs] == ["03-31 01:00:00", "04-01 00:30:00"]
        assert clock.now() == datetime(2030, 4, 1, 10, tzinfo=UTC)


async def test_everything_is_done_in_the_order_of_time(app: Rota) -> None:
    order: list[str] = []

    @app.job(backoff="20m")
    async def flaky(ctx: Context) -> None:
        order.append(f"flaky {ctx.attempt} at {harness.clock.now():%H:%M}")
        if ctx.attempt < 3:
            raise OSError("not yet")

    @app.job
    def later() -> None:
        order.append(f"later at {harness.clock.now():%H:%M}")

    @app.job
    def tick() -> None:
        order.append(f"tick at {harness.clock.now():%H:%M}")

    app.schedule("ticks", tick, every("30m"))
    async with Harness(app) as harness:
        await flaky.aenqueue()
        await later.options(delay="45m").aenqueue()
        ran = await harness.pass_time("1h5m")
    timed = [line for line in order if "flaky" not in line]
    assert timed == ["tick at 12:30", "later at 12:45", "tick at 13:00"]
    assert [line.split(" at ")[0] for line in order if "flaky" in line] == ["flaky 1", "flaky 2", "flaky 3"]
    assert [line[-5:] for line in order] == sorted(line[-5:] for line in order)
    assert len(ran) == 4
    assert {run.state for run in ran} == {RunState.SUCCEEDED}


async def test_what_follows_its_own_end_and_what_waits_for_nobody(app: Rota) -> None:
    @app.job
    def poll() -> None: ...

    @app.job(max_attempts=1)
    def ask(ctx: SyncContext) -> None:
        ctx.wait_for_external("10m")

    app.schedule("polls", poll, after("20m"))
    async with Harness(app) as harness:
        waiting = await ask.aenqueue()
        ran = await harness.pass_time("1h")
        assert [at(run)[6:] for run in ran if run.schedule] == ["12:00:01", "12:20:01", "12:40:01"]
        assert await harness.state(waiting) is RunState.TIMED_OUT
        assert (await harness.run(waiting)).finished_at == harness.clock.now() - timedelta(minutes=50, microseconds=-1)


async def test_how_much_time_is_to_pass(app: Rota) -> None:
    async with Harness(app) as harness:
        for wrong in ({}, {"by": "1h", "until": "2031-01-01"}):
            with pytest.raises(Invalid, match="how much time"):
                await harness.pass_time(**wrong)
        with pytest.raises(Invalid, match=r"2029-01-01 00:00:00.* is in the past"):
            await harness.pass_time(until="2029-01-01")


def test_without_an_event_loop(app: Rota) -> None:
    @app.job(backoff="10m")
    async def flaky(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise OSError("not yet")
        return ctx.attempt

    with Harness.blocking(app, lease="1m") as harness:
        assert isinstance(harness, BlockingHarness)
        assert harness.lease == timedelta(minutes=1)
        run = flaky.enqueue()
        assert [one.state for one in harness.drain()] == [RunState.SCHEDULED]
        assert [one.result for one in harness.pass_time("1h")] == [2]
        assert harness.client.get(run.id).state is RunState.SUCCEEDED
        assert [attempt.no for attempt in harness.attempts(run)] == [1, 2]
        zombie_run = harness.enqueue(flaky)
        zombie = harness.worker("a").claim()
        assert zombie.fence() == 1
        harness.clock.advance("2m")
        harness.reap()
        assert harness.state(zombie_run) is RunState.QUEUED
        assert harness.cancel(zombie_run).state is RunState.CANCELLED
        harness.wait(harness.inner.janitor.step())
    assert harness.left_over == []


async def test_a_harness_can_be_opened_inside_of_itself(app: Rota) -> None:
    async with Harness(app) as harness:
        async with harness as again:
            assert again is harness
        assert await harness.drain() == []


def test_clocks_are_set_by_what_a_wall_clock_shows() -> None:
    clock = ManualClock("2030-03-31 01:59", zone=BERLIN)
    assert clock.now() == datetime(2030, 3, 31, 0, 59, tzinfo=UTC)
    clock.advance_to("2030-03-31 03:00", zone=BERLIN)
    assert clock.monotonic() == 60
    assert repr(clock) == "<clock at 2030-03-31 01:00:00+00:00>"
    with pytest.raises(Invalid, match=r"2030-03-31 01:00:00\+01:00 is in the past: it is 2030-03-31 03:00:00\+02:00"):
        clock.advance_to("2030-03-31 01:00", zone=BERLIN)
