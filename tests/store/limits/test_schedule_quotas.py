"""Runs that schedules make are under the quotas of their scopes, and under the rates of their own."""

import pytest

from rota.core.ledger.backfill import BackfillOrder
from rota.core.limits.quotas import quota_of
from rota.core.schedules.schedule import options_of
from rota.errors import NotTriggered
from rota.store import Store
from tests.support.clock import MINUTE as ONE_MINUTE
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, finish_all, put
from tests.support.schedules.schedules import get_schedule, make_schedule, minutes, noon, plan, runs_of, told

SCOPES = [("tenant", "a"), ("tenant", "b")]


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def test_no_more_at_once(store: Store, clock: ManualClock) -> None:
    await store.quotas.update("tenant", "", quota_of(max_concurrency=1), "ann")
    await make_schedule(store, scopes=SCOPES, overlap="allow")
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    assert await claim(store) == []
    held = await claim_limited(store)
    assert sorted(one.scope_id for one in held) == ["a", "b"]
    assert await claim_limited(store) == []
    await finish_all(store, held)
    assert len(await claim_limited(store)) == 2


async def test_too_many_that_wait_are_skipped(store: Store, clock: ManualClock) -> None:
    await store.quotas.update("tenant", "a", quota_of(max_concurrency=1, max_queued=1), "ann")
    await make_schedule(store, scopes=SCOPES, overlap="allow", catch_up="all")
    clock.advance(minutes(3))
    for _ in range(4):
        await plan(store)
    runs = await runs_of(store)
    skipped = [run for run in runs if run.state.value == "skipped"]
    assert [(run.scope.id, f"{run.plan_time:%H:%M}") for run in skipped] == [("a", "12:03")]
    assert skipped[0].reason == "quota of tenant/a is full: 1 at once and 1 waiting"
    assert len(runs) == 6


async def test_a_trigger_by_hand_is_refused(store: Store) -> None:
    await make_schedule(store, scopes=SCOPES[:1], overlap="allow")
    await store.quotas.update("tenant", "", quota_of(max_queued=1), "ann")
    await store.schedules.trigger("s", None, force=False)
    with pytest.raises(NotTriggered, match="quota of tenant/a"):
        await store.schedules.trigger("s", None, force=True)


async def test_backfilled_runs(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes=SCOPES, catch_up="none")
    clock.advance(minutes(10))
    await plan(store)
    await claim(store)
    await store.quotas.update("tenant", "", quota_of(rate=(2, "1m")), "ann")
    now = clock.micros()
    await store.ledger.backfill("s", BackfillOrder(now - 5 * 60_000_000, now - 60_000_000, concurrency=10))
    assert len(await claim_limited(store)) == 4
    assert await claim_limited(store) == []
    clock.advance(ONE_MINUTE)
    await store.promote(10)
    assert len(await claim_limited(store)) == 4


async def test_a_rate_of_its_own(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="allow", catch_up="all", rate="2/10m")
    schedule = await get_schedule(store)
    assert options_of(schedule.definition)["rate"] == "2/10m"
    clock.advance(minutes(4))
    await plan(store)
    other = await put(store)
    assert [one.run_id for one in await claim(store)] == [other]
    assert len(await claim_limited(store)) == 2
    assert await claim_limited(store) == []
    clock.advance(minutes(10))
    await store.promote(10)
    assert len(await claim_limited(store)) == 2
    assert [state for _, state in told(await runs_of(store))][:4] == ["running"] * 4
