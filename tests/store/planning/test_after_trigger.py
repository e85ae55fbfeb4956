"""Schedules that follow their own runs: `after` keeps its distance from the end of the last one."""

from datetime import timedelta

import pytest

from rota.core.calendar.triggers import after
from rota.core.jobs.job import Retention
from rota.core.states import Outcome
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, finish, tell
from tests.support.schedules.ledger_oracle import rows
from tests.support.schedules.schedules import edit, get_schedule, make_schedule, minutes, noon, plan, runs_of

MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> ManualClock:
    return noon()


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CANCELLED, Outcome.SUCCEEDED])
async def test_after_follows_a_run_however_it_ends(store: Store, clock: ManualClock, outcome: Outcome) -> None:
    await make_schedule(store, trigger=after("10m"))
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (first,) = await claim(store)
    clock.advance(minutes(3))
    if outcome is Outcome.CANCELLED:
        await store.cancel(first.run_id, None, "ada")
    await tell(store, first, outcome)
    ended = instant(clock.micros())
    await plan(store)
    assert (await get_schedule(store)).next_plan == ended + minutes(10)
    clock.advance(minutes(10))
    assert await plan(store) == 1


async def test_after_goes_on_when_its_run_was_cancelled_unclaimed_or_pruned(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10s"))
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (run,) = await runs_of(store)
    await store.cancel(run.id, None, None)
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(minutes(1))
    await plan(store)
    assert len(await runs_of(store)) == 2
    (second,) = await claim(store)
    await finish(store, second)
    clock.advance(timedelta(days=90))
    await store.prune(lambda _job: Retention(keep=0, keep_for=timedelta(0)))
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert (await claim(store)) != [], "it goes on"


async def test_after_while_it_awaits_may_be_edited_paused_and_ended(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10m"))
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (first,) = await claim(store)
    await edit(store, "s", after("20m"))
    await finish(store, first)
    await plan(store)
    assert (await get_schedule(store)).next_plan == instant(clock.micros()) + minutes(20)
    clock.advance(minutes(20))
    assert await plan(store) == 1
    (second,) = await claim(store)
    await store.schedules.pause("s", None, None, None)
    await finish(store, second)
    clock.advance(minutes(60))
    assert await plan(store) == 0, "it is paused"
    await store.schedules.resume("s", "skip", None)
    clock.advance(timedelta(seconds=1))
    assert await plan(store) == 1


async def test_after_is_not_hurried_by_an_edit(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10m"))
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (first,) = await claim(store)
    await finish(store, first)
    await plan(store)
    due_at = (await get_schedule(store)).next_plan
    clock.advance(minutes(1))
    await edit(store, "s", after("10m"), description="only its words change")
    assert await plan(store) == 0, "ten minutes after the last run ended, not at once"
    assert (await get_schedule(store)).next_plan == due_at


async def test_after_is_not_hurried_by_a_pause(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10m"))
    clock.advance(timedelta(seconds=1))
    assert await plan(store) == 1
    (held,) = await claim(store)
    await store.schedules.pause("s", None, None, None)
    clock.advance(minutes(1))
    await store.schedules.resume("s", "skip", None)
    assert await plan(store) == 0, "it waits for the run that was there before the pause"
    await store.schedules.pause("s", None, None, None)
    await finish(store, held)
    clock.advance(minutes(2))
    await store.schedules.resume("s", "skip", None)
    assert await plan(store) == 0, "ten minutes after that run ended"
    clock.advance(minutes(8))
    assert await plan(store) == 1
    assert len(await runs_of(store)) == 2


async def test_after_keeps_its_distance_when_it_may_run_more_often(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10m"), max_runs=1)
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (held,) = await claim(store)
    await finish(store, held)
    clock.advance(minutes(1))
    await edit(store, "s", after("10m"), max_runs=5)
    clock.advance(minutes(8))
    assert await plan(store) == 0, "ten minutes after the last run ended"
    clock.advance(minutes(1))
    assert await plan(store) == 1


async def test_after_follows_the_runs_of_the_scope_that_it_has(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10m"), scopes=[("tenant", "z")])
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (old,) = await claim(store)
    await finish(store, old)
    await edit(store, "s", after("10m"), scopes=[("tenant", "a")])
    clock.advance(minutes(10))
    await plan(store)
    (held,) = await claim(store)
    assert held.scope_id == "a"
    await store.schedules.pause("s", None, None, None)
    clock.advance(minutes(20))
    await store.schedules.resume("s", "skip", None)
    clock.advance(minutes(1))
    assert await plan(store) == 0, "its own last run is not over"
    await finish(store, held)
    await plan(store)
    clock.advance(minutes(9))
    assert await plan(store) == 0, "ten minutes after its end"
    clock.advance(minutes(1))
    assert await plan(store) == 1


async def test_after_with_max_runs_ends(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10s"), max_runs=2)
    for _ in range(5):
        clock.advance(minutes(1))
        await plan(store)
        for one in await claim(store):
            await finish(store, one)
    assert len(await runs_of(store)) == 2
    assert (await get_schedule(store)).state == "ended"


async def test_a_deleted_follower_is_not_woken_by_the_end_of_its_run(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10s"))
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (first,) = await claim(store)
    await store.schedules.delete("s", None)
    await finish(store, first)
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert len(await rows(store, "select id from rota_run")) == 1
