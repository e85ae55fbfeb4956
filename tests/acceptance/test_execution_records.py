"""An execution record with leases and scopes: each field of its JobSpec at work.

Names of tests are its sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from rota import Config, Context, Rota, every
from rota.core.runs.run import Run
from rota.core.states import RunState
from rota.errors import Invalid, LeaseLost
from rota.testing import Harness
from tests.support.wait import until
from tests.system.site import LEASE, REAPER, Site

CADENCE = timedelta(minutes=5)
SPEC: dict[str, Any] = {"delay": "5m", "catch_up": {"mode": "latest", "window": "1h"}}
"""Cadence, ScheduleDelay, CatchUpMode and CatchUpWindow of a rollup."""


async def register(harness: Harness, job: dict[str, Any] | None = None, **spec: Any) -> None:
    """Register the rollup at a multiple of its cadence."""
    await harness.declare("rollup", **({"max_attempts": 3, "backoff": ["30s", "2m"]} | (job or {})))
    harness.clock.advance(CADENCE - (harness.clock.now() - floor_plan(harness.clock.now())))
    await harness.client.schedules.create("rollup", "rollup", every("5m"), **{**SPEC, **spec})


def floor_plan(at: datetime) -> datetime:
    """Return the canonical UTC plan time that contains `at`."""
    return datetime.fromtimestamp(at.timestamp() // 300 * 300, at.tzinfo)


async def pass_time(harness: Harness, span: timedelta) -> None:
    harness.clock.advance(span)
    while await harness.planner.step() == timedelta(0):
        pass


async def runs(harness: Harness) -> list[Run]:
    found = await harness.client.list(limit=100)
    return sorted(found, key=lambda run: (run.plan_time, run.scope.id if run.scope else ""))


def plan_times(found: list[Run]) -> Iterator[datetime | None]:
    return (run.plan_time for run in found)


async def test_a_delay_means_that_the_plan_of_twelve_becomes_eligible_five_minutes_later(harness: Harness) -> None:
    await register(harness)
    twelve = harness.clock.now() + CADENCE
    await pass_time(harness, CADENCE)
    assert [run for run in await runs(harness) if run.plan_time == twelve] == []
    await pass_time(harness, CADENCE)
    assert twelve in plan_times(await runs(harness))


async def test_latest_only_claims_the_most_recently_due_plan(harness: Harness) -> None:
    await register(harness)
    await pass_time(harness, timedelta(minutes=42))
    (run,) = await runs(harness)
    assert run.plan_time == floor_plan(harness.clock.now() - CADENCE)
    assert (run.missed_count, run.scope.kind, run.scope.id) == (6, "global", "global"), "the others are counted"


async def test_every_plan_claims_each_missed_one_oldest_first(harness: Harness) -> None:
    await register(harness, catch_up={"mode": "all", "window": "1h", "per_tick": 2}, overlap="allow")
    begin = harness.clock.now()
    harness.clock.advance(timedelta(minutes=35))
    await harness.planner.step()
    assert list(plan_times(await runs(harness))) == [begin + CADENCE * number for number in (1, 2)], "per_tick"
    await pass_time(harness, timedelta(0))
    assert list(plan_times(await runs(harness))) == [begin + CADENCE * number for number in range(1, 7)]


async def test_plans_older_than_the_window_are_ignored(harness: Harness) -> None:
    await register(harness, catch_up={"mode": "all", "window": "15m"}, overlap="allow")
    await pass_time(harness, timedelta(hours=2))
    horizon = harness.clock.now() - CADENCE - timedelta(minutes=15)
    found = list(plan_times(await runs(harness)))
    assert found
    assert all(at is not None and at >= horizon for at in found)


async def test_the_unique_key_ensures_that_only_one_instance_wins(harness: Harness) -> None:
    await register(harness)
    await pass_time(harness, 2 * CADENCE)
    await harness.planner.step()
    worker, other = await harness.worker("a").claim(), await harness.worker("b").claim()
    assert sorted((len(worker.claims), len(other.claims))) == [0, 1]
    await worker.finish()
    assert len({(run.scope, run.plan_time) for run in await runs(harness)}) == len(await runs(harness))


async def test_the_backoff_before_each_attempt_and_its_last_entry_repeats(harness: Harness) -> None:
    await register(harness, {"max_attempts": 4})
    await pass_time(harness, 2 * CADENCE)
    waits = []
    for _ in range(3):
        await harness.promoter.step()
        await (await harness.worker().claim()).fail()
        (run,) = await runs(harness)
        waits.append(run.run_at - harness.clock.now())
        harness.clock.advance(waits[-1])
    assert waits == [timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=2)]


async def test_an_empty_backoff_disables_retry(harness: Harness) -> None:
    await register(harness, {"backoff": []})
    await pass_time(harness, 2 * CADENCE)
    await (await harness.worker().claim()).fail()
    assert [run.state for run in await runs(harness)] == [RunState.FAILED]


async def test_the_handler_gets_its_plan_and_attempt_and_returns_rows_and_a_result(harness: Harness) -> None:
    """HandlerInput and HandlerResult; the second attempt is that of the same plan."""
    seen: list[tuple[Any, ...]] = []

    @harness.app.job(name="rollup", max_attempts=3, backoff=["30s"])
    async def rollup(ctx: Context) -> dict[str, int]:
        ctx.heartbeat()
        seen.append((ctx.job, ctx.scope.id, ctx.plan_time, ctx.attempt, bool(ctx.worker_id)))
        ctx.count("rows", 7)
        if ctx.attempt == 1:
            raise ConnectionError("try again")
        return {"hours": 2}

    await harness.store.save_jobs(harness.app.registry.definitions())
    await harness.client.schedules.create("rollup", "rollup", every("5m"), **SPEC, scopes=[("shard", "3")])
    await pass_time(harness, 3 * CADENCE)
    await harness.drain()
    harness.clock.advance(timedelta(seconds=30))
    await harness.promoter.step()
    await harness.drain()
    (run,) = await runs(harness)
    assert seen == [("rollup", "3", run.plan_time, attempt, True) for attempt in (1, 2)]
    assert (run.state, run.result) == (RunState.SUCCEEDED, {"hours": 2})
    assert [attempt.counters for attempt in await harness.attempts(run)] == [{"rows": 7}, {"rows": 7}]


async def test_a_stale_lease_is_stolen_and_its_former_runner_is_told(harness: Harness) -> None:
    """AllowStaleReentry: true."""
    await register(harness)
    await pass_time(harness, 2 * CADENCE)
    stale = await harness.worker("a").claim()
    harness.clock.advance(harness.lease + timedelta(seconds=1))
    await harness.reaper.step()
    thief = await harness.worker("b").claim()
    assert len(thief.claims) == 1
    with pytest.raises(LeaseLost):
        await stale.finish()
    await thief.finish()
    (run,) = await runs(harness)
    assert (run.state, run.attempt, run.worker_id and run.worker_id[0]) == (RunState.SUCCEEDED, 2, "b")


async def test_a_stale_lease_is_not_stolen_from_a_job_that_is_not_idempotent(harness: Harness) -> None:
    """AllowStaleReentry: false. The plan fails with the code stale_timeout."""
    await register(harness, {"on_lost": "fail"})
    await pass_time(harness, 2 * CADENCE)
    await harness.worker("a").claim()
    harness.clock.advance(harness.lease + timedelta(seconds=1))
    await harness.reaper.step()
    assert (await harness.worker("b").claim()).claims == {}
    (run,) = await runs(harness)
    assert (run.state, run.error and run.error.code) == (RunState.EXPIRED, "stale_timeout")


@pytest.mark.parametrize(("job", "begins"), [("nap", 2), ("pay", 1)])
async def test_a_killed_runner_is_replaced_or_not(site: Site, job: str, begins: int) -> None:
    """In real processes: `pay` must not be repeated."""
    first = site.worker("first")
    run = await site.enqueue(job, seconds=[3_600.0, 0.0])
    await site.begun(run)
    site.worker("second")
    first.kill()
    done = await site.final(run, LEASE + REAPER + 60)
    assert done.state is (RunState.SUCCEEDED if begins == 2 else RunState.EXPIRED)
    assert len(site.ledger.entries("begin", run)) == begins


async def test_a_runner_that_hung_is_told_that_its_lease_was_stolen_and_stops(site: Site) -> None:
    """In real processes: ErrLeaseLost, the handler should stop and return."""
    first = site.worker("first")
    run = await site.enqueue("nap", seconds=[3_600.0, 0.0])
    await site.begun(run)
    site.worker("second")
    first.pause()
    done = await site.final(run, LEASE + REAPER + 60)
    first.resume()
    await until(lambda: len(site.ledger.entries("stop", run)) == 1)
    assert (done.state, done.worker_id and done.worker_id.partition("@")[0]) == (RunState.SUCCEEDED, "second")


async def test_a_provider_returns_one_entry_for_each_shard_at_a_given_time(harness: Harness) -> None:
    asked: list[datetime] = []

    @harness.app.scopes("shards")
    def shards(now: datetime) -> list[tuple[str, str]]:
        asked.append(now)
        return [("shard", "0"), ("shard", "1")]

    await register(harness, scopes="shards")
    await pass_time(harness, 2 * CADENCE)
    found = [(run.scope.kind, run.scope.id) for run in await runs(harness) if run.scope]
    assert found == [("shard", "0"), ("shard", "1")]
    assert all(at.utcoffset() == timedelta(0) for at in asked)


@pytest.mark.parametrize(
    ("job", "spec"),
    [
        ({"max_attempts": 0}, {}),
        ({"timeout": "0s"}, {}),
        ({}, {"catch_up": {"mode": "all", "per_tick": 0}}),
        ({}, {"scopes": []}),
    ],
)
async def test_invariants_of_a_spec_are_enforced(harness: Harness, job: dict[str, Any], spec: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        await register(harness, job, **spec)


def test_invariants_of_names_cadences_and_heartbeats_are_enforced() -> None:
    """The heartbeat must be smaller than the stale timeout: here the lease, which needs no run timeout to be longer."""
    for refused in (
        lambda: Rota().job(name="")(lambda: None),
        lambda: every("0s"),
        lambda: Config(lease=timedelta(seconds=10), heartbeat=timedelta(seconds=10)),
    ):
        with pytest.raises(Invalid):
            refused()
