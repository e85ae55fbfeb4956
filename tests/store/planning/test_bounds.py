"""Planning stays within one transaction's means, and within its policies, however things come together."""

from datetime import timedelta

import pytest

from rota.core.calendar.triggers import after, every
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.unique import Unique
from rota.core.states import Outcome
from rota.store import Store
from rota.store.planning import due
from rota.store.planning import plan as plans
from rota.store.schedules import change as changing
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, finish, tell
from tests.support.schedules.schedules import (
    edit,
    get_schedule,
    make_schedule,
    minutes,
    noon,
    plan,
    ranges_of,
    runs_of,
    told,
)


@pytest.fixture
def clock() -> ManualClock:
    return noon()


@pytest.mark.parametrize("overlap", ["queue_one", "queue_all"])
async def test_a_queued_run_that_is_cancelled_lets_nobody_overtake(
    store: Store, clock: ManualClock, overlap: str
) -> None:
    await make_schedule(store, overlap=overlap)
    clock.advance(minutes(1))
    await plan(store)
    (first,) = await claim(store)
    clock.advance(minutes(1))
    await plan(store)
    await store.cancel((await runs_of(store))[1].id, None, None)
    clock.advance(minutes(1))
    await plan(store)
    assert not await claim(store), "the first one still runs"
    await finish(store, first)
    assert len(await claim(store)) == 1


async def test_of_several_planned_together_the_last_one_ends_whoever_waited_before_them(
    store: Store, clock: ManualClock
) -> None:
    await make_schedule(store, catch_up={"mode": "all", "per_tick": 2}, overlap="cancel_previous")
    clock.advance(minutes(1))
    await plan(store)
    (first,) = await claim(store)
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(minutes(2))
    await plan(store)
    states = [run.state.value for run in await runs_of(store)]
    assert states == ["cancelling", "skipped", "skipped", "scheduled"]
    await tell(store, first, Outcome.CANCELLED)
    assert len(await claim(store)) == 1


async def test_many_scopes_are_planned_a_few_schedules_at_a_time(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "MOST_RUNS", 10)
    monkeypatch.setattr(plans, "MOST_RUNS", 10)
    scopes = tuple(Scope("tenant", str(number)) for number in range(4))
    for number in range(5):
        await make_schedule(store, f"s{number}", scopes="tenants")
    clock.advance(minutes(1))
    first = await store.planning.plan(100, {"tenants": scopes})
    assert (first.schedules, first.runs) == (2, 8)
    assert await plan(store, tenants=scopes) == 12


async def test_a_long_catch_up_is_planned_in_bites(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MOST_RUNS", 10)
    for number in range(3):
        await make_schedule(store, f"s{number}", catch_up="all", overlap="allow")
    clock.advance(minutes(20))
    first = await store.planning.plan(100, {})
    assert first.runs == 10
    assert await plan(store) == 50


async def test_a_backlog_does_not_keep_anybody_from_pausing(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "MOST_RUNS", 10)
    schedule = await make_schedule(store, catch_up={"mode": "all", "per_tick": 5}, overlap="allow")
    clock.advance(minutes(60))
    await store.schedules.pause("s", "enough", None, None)
    assert len(await runs_of(store)) == 10
    assert await ranges_of(store, schedule) == [("12:11:00", "13:00:00", 50, "missed")]
    assert (await store.ledger.verify("s", thorough=True)).ok


async def test_resuming_catches_up_with_as_much_as_one_transaction_holds(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "MOST_RUNS", 10)
    await make_schedule(store, overlap="allow")
    await store.schedules.pause("s", None, None, None)
    clock.advance(minutes(60))
    await store.schedules.resume("s", "all", None)
    runs = await runs_of(store)
    assert (told(runs)[0][0], len(runs)) == ("12:51:00", 10)
    assert (await store.ledger.verify("s", thorough=True)).ok


async def test_of_two_schedules_with_one_unique_key_one_runs(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", unique=Unique())
    await make_schedule(store, "a", job=job)
    await make_schedule(store, "b", job=job)
    clock.advance(minutes(1))
    await plan(store)
    states = [run.state.value for name in "ab" for run in await runs_of(store, name)]
    assert sorted(states) == ["queued", "skipped"]


async def test_a_follower_that_has_run_often_enough_rests(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("1m"))
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (claimed,) = await claim(store)
    await edit(store, "s", after("1m"), max_runs=1)
    await finish(store, claimed)
    clock.advance(minutes(5))
    await plan(store)
    assert (await store.planning.look([])).next_in is None
    assert (await get_schedule(store)).state == "ended"
    assert len(await runs_of(store)) == 1


async def test_an_older_program_leaves_newer_time_zones_alone_for_a_while(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        for module in (changing, plans, due):
            newer.setattr(module, "TZDATA_VERSION", "2999z")
        await make_schedule(store, trigger=every("1h"))
    clock.advance(minutes(60))
    assert await plan(store) == 0
    clock.advance(minutes(2))  # nobody newer has come
    assert await plan(store) == 1
    assert (await get_schedule(store)).tzdata < "2999z"


async def test_scopes_that_are_gone_leave_nothing_to_look_through(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes="tenants", failure="skip")
    for name in "abc":
        clock.advance(minutes(1))
        await plan(store, tenants=(Scope("tenant", name),))
        for claimed in await claim(store):
            await tell(store, claimed, Outcome.FAILED if name == "a" else Outcome.SUCCEEDED)
    clock.advance(minutes(1))
    await plan(store, tenants=(Scope("tenant", "d"),))
    left = await store.database.read(lambda tx: tx.fetch_sql("select scope_id from rota_lane_run"))
    assert [row[0] for row in left] == ["d"]
    clock.advance(minutes(1))
    await plan(store, tenants=(Scope("tenant", "a"),))
    assert [run.state.value for run in await runs_of(store) if run.scope.id == "a"] == ["failed", "skipped"]


async def test_resuming_with_all_runs_all_one_after_the_other(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)  # overlap: skip
    await store.schedules.pause("s", None, None, None)
    clock.advance(minutes(3))
    await store.schedules.resume("s", "all", None)
    for _ in range(3):
        (claimed,) = await claim(store)
        await finish(store, claimed)
    assert [state for _, state in told(await runs_of(store))] == ["succeeded"] * 3


async def test_a_limited_run_that_waits_for_its_jitter_is_claimed_within_its_limit(
    store: Store, clock: ManualClock
) -> None:
    await make_schedule(store, jitter="30s", max_concurrency=1)
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(timedelta(seconds=31))
    await store.promote(10)
    assert not await claim(store)
    (claimed,) = await claim_limited(store)
    await finish(store, claimed)
