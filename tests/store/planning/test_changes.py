"""What changes around schedules: jobs, providers, awaited runs, retention, time zone data, summer time."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.core.calendar import cron_times, rules, zones
from rota.core.calendar import times as trigger_times
from rota.core.calendar.triggers import cron, every
from rota.core.jobs.job import JobDefinition, Retention
from rota.store import Store
from rota.store.planning import due, make_runs
from rota.store.planning import plan as plans
from rota.store.schedules import change, schedule_row
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, finish, state_of
from tests.support.schedules.ledger_oracle import SECOND, check_account, each, fires, named_by_revisions, rows
from tests.support.schedules.schedules import edit, get_schedule, make_schedule, minutes, noon, plan, runs_of, told

MINUTE = timedelta(minutes=1)
A, B = Scope("tenant", "a"), Scope("tenant", "b")
EAGER: dict[str, Any] = {"overlap": "allow", "catch_up": "all"}


@pytest.fixture
def clock() -> ManualClock:
    return noon()


@pytest.mark.parametrize(("mode", "caught_up"), [("skip", 0), ("latest", 1), ("all", 30)])
async def test_quartz_308_a_resumed_job_floods_nobody_unless_asked(
    store: Store, clock: ManualClock, mode: str, caught_up: int
) -> None:
    schedule = await make_schedule(store, **EAGER)
    clock.advance(minutes(1))
    await plan(store)
    await store.pause_job("work", "a break", "ada")
    clock.advance(minutes(30))
    assert await plan(store) == 0
    assert (await get_schedule(store)).state == "job paused"
    await store.resume_job("work", mode, "ada")
    assert len(await runs_of(store)) == 1 + caught_up
    clock.advance(minutes(1))
    assert await plan(store) == 1
    await check_account(store, schedule.id, await named_by_revisions(store, schedule.id, clock.micros()))


async def test_a_job_and_its_schedule_paused_both_need_both_to_go_on(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, **EAGER)
    await store.pause_job("work", None, None)
    await store.schedules.pause("s", "mine", "ada", None)
    await store.resume_job("work", "all", None)
    clock.advance(minutes(3))
    assert await plan(store) == 0
    assert ((await get_schedule(store)).state, (await get_schedule(store)).pause_reason) == ("paused", "mine")
    await store.pause_job("work", None, None)
    await store.schedules.resume("s", "all", None)
    clock.advance(minutes(3))
    assert await plan(store) == 0
    assert (await get_schedule(store)).state == "job paused"
    await store.resume_job("work", "skip", None)
    clock.advance(minutes(1))
    assert await plan(store) == 1


async def test_a_cancelled_job_is_planned_no_more_until_somebody_resumes_it(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, **EAGER)
    clock.advance(minutes(2))
    await plan(store)
    clock.advance(minutes(1))  # due, and not planned yet
    await store.cancel_job("work", "enough", "ada")
    assert {state for _, state in told(await runs_of(store))} == {"cancelled"}
    clock.advance(minutes(10))
    assert await plan(store) == 0
    assert (await get_schedule(store)).state == "job cancelled"
    await edit(store, "s", every("1m"), **EAGER)
    assert await plan(store) == 0, "an edit does not wake it"
    await store.resume_job("work", "skip", "ada")
    assert await plan(store) == 0, "no flood"
    clock.advance(minutes(1))
    assert await plan(store) == 1
    await check_account(store, schedule.id, await named_by_revisions(store, schedule.id, clock.micros()))


async def test_a_schedule_of_a_paused_job_rests_from_the_start(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([JobDefinition(name="work")])
    await store.pause_job("work", None, None)
    schedule = await make_schedule(store, **EAGER)
    assert schedule.state == "job paused"
    clock.advance(minutes(5))
    assert await plan(store) == 0
    await store.resume_job("work", "latest", None)
    clock.advance(minutes(1))
    await plan(store)
    await check_account(store, schedule.id, await named_by_revisions(store, schedule.id, clock.micros()))


async def test_a_disabled_schedule_plans_nothing_and_an_enabled_one_starts_anew(
    store: Store, clock: ManualClock
) -> None:
    schedule = await make_schedule(store, enabled=False, **EAGER)
    clock.advance(minutes(5))
    assert await plan(store) == 0
    await edit(store, "s", every("1m"), **EAGER)
    clock.advance(minutes(2))
    assert await plan(store) == 2
    await edit(store, "s", every("1m"), enabled=False, **EAGER)
    clock.advance(minutes(2))
    assert await plan(store) == 0
    await check_account(store, schedule.id, await named_by_revisions(store, schedule.id, clock.micros()))


async def test_scopes_vanish_and_come_back(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes="tenants", **EAGER)
    for named in ((A, B), (A,), (), (B,), (A, B)):
        clock.advance(minutes(2))
        await plan(store, tenants=named)
    times = {
        scope.id: [f"{run.plan_time:%M}" for run in await runs_of(store) if run.scope == scope] for scope in (A, B)
    }
    assert times == {"a": ["01", "02", "03", "04", "10"], "b": ["01", "02", "08", "09", "10"]}
    found = await rows(store, "select plan_time, scope_id, count(*) from rota_run group by 1, 2 having count(*) > 1")
    assert found == []


async def test_a_schedule_deleted_while_it_is_paused_does_not_wake(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    await store.schedules.pause("s", None, None, clock.micros() + 60_000_000)
    await store.schedules.delete("s", None)
    clock.advance(minutes(5))
    assert (await store.planning.look([])).next_at is None
    assert await plan(store) == 0
    assert await runs_of(store) == []


async def test_pruning_frees_no_key_that_can_be_planned_again(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, **EAGER)
    for _ in range(5):
        clock.advance(minutes(1))
        await plan(store)
        for one in await claim(store):
            await finish(store, one)
    made = {run.plan_time for run in await runs_of(store)}
    clock.advance(timedelta(days=100))
    await store.prune(lambda _job: Retention(keep=0, keep_for=timedelta(0)))
    clock.advance(timedelta(days=-100))
    await plan(store)
    await store.schedules.pause("s", None, None, None)
    await store.schedules.resume("s", "all", None)
    assert {run.plan_time for run in await runs_of(store)} <= made
    clock.advance(minutes(1))
    assert await plan(store) == 1
    ((cursor,),) = await rows(store, "select cursor_at from rota_schedule_now where id = :id", id=schedule.id)
    assert cursor == clock.micros()


def newer_zones(monkeypatch: pytest.MonkeyPatch, version: str = "2999z") -> None:
    for module in (zones, plans, due, change):
        monkeypatch.setattr(module, "TZDATA_VERSION", version)


async def test_newer_time_zone_data_makes_one_revision(
    store: Store, second: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = await make_schedule(store, trigger=cron("0 * * * *", "Europe/Berlin"), **EAGER)
    began = clock.micros()
    clock.advance(minutes(60))
    await plan(store)
    newer_zones(monkeypatch)
    assert await store.planning.replan_zones()
    assert not await second.planning.replan_zones()
    await plan(second)
    await plan(store)
    assert ((await get_schedule(store)).tzdata, (await get_schedule(store)).revision) == ("2999z", 2)
    clock.advance(minutes(120))
    await plan(store)
    assert (await get_schedule(store)).revision == 2
    await check_account(store, schedule.id, each(timedelta(hours=1), began, clock.micros()))


async def test_newer_time_zone_data_may_move_the_next_fire_forward(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a country decides, a week before, to begin summer time."""
    await make_schedule(store, trigger=cron("0 18 * * *", "Europe/Berlin"), **EAGER)
    before = (await get_schedule(store)).next_plan
    assert before is not None
    assert f"{before:%H:%M}" == "16:00"
    sooner = zones.zone("Africa/Nairobi")  # UTC+3: one hour more than Berlin's summer
    monkeypatch.setattr(zones, "_loaded", lambda _name: sooner)
    forget_compiled_rules()
    newer_zones(monkeypatch)
    assert await store.planning.replan_zones()
    await plan(store)
    assert (await get_schedule(store)).next_plan == before - timedelta(hours=1)
    clock.advance(minutes(180))
    assert await plan(store) == 1
    assert told(await runs_of(store)) == [("15:00:00", "queued")]
    monkeypatch.undo()
    forget_compiled_rules()


def forget_compiled_rules() -> None:
    """Each keeps the zones that it was made with."""
    for module in (rules, cron_times, trigger_times, schedule_row, make_runs):
        for thing in vars(module).values():
            if hasattr(thing, "cache_clear"):
                thing.cache_clear()


async def test_newer_time_zone_data_ends_no_pause(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_schedule(store, **EAGER)
    await store.schedules.pause("s", "until tomorrow", "ada", clock.micros() + 86_400 * SECOND)
    newer_zones(monkeypatch)
    await store.planning.replan_zones()
    clock.advance(minutes(3))
    assert await plan(store) == 0
    assert (await get_schedule(store)).state == "paused"


@pytest.mark.parametrize(
    ("day", "expression"),
    [
        (datetime(2025, 3, 29, tzinfo=UTC), "30 2 * * *"),  # an hour that is left out
        (datetime(2025, 10, 25, tzinfo=UTC), "30 2 * * *"),  # an hour that comes twice
        (datetime(2025, 3, 29, tzinfo=UTC), "*/15 * * * *"),
        (datetime(2025, 10, 25, tzinfo=UTC), "*/15 * * * *"),
        (datetime(2025, 10, 25, tzinfo=UTC), "0 */2 * * *"),
    ],
)
async def test_apscheduler_980_summer_time_through_the_whole_stack(
    store: Store, clock: ManualClock, day: datetime, expression: str
) -> None:
    """Two days around each change, planned every few minutes: as an oracle says, no loop, none twice."""
    clock.advance(timedelta(microseconds=int(day.timestamp()) * SECOND - clock.micros()))
    schedule = await make_schedule(store, trigger=cron(expression, "Europe/Berlin"), **EAGER)
    for _ in range(48):
        clock.advance(minutes(60))
        await plan(store)
    named = fires(expression, "Europe/Berlin", day + timedelta(seconds=1), day + timedelta(days=2))
    await check_account(store, schedule.id, named)


async def test_dkron_349_quartz_145_an_orphaned_run_does_not_forbid_the_next_for_ever(
    store: Store, clock: ManualClock
) -> None:
    await make_schedule(store, max_attempts=1)
    clock.advance(minutes(1))
    await plan(store)
    (orphan,) = await claim(store)  # and its worker dies
    clock.advance(minutes(1))
    await store.reap(10)
    await plan(store)
    assert (await state_of(store, orphan.run_id)).value == "expired"
    assert told(await runs_of(store))[-1] == ("12:02:00", "queued")


async def test_apscheduler_959_many_claimers_of_one_fire_get_it_once(
    store: Store, second: Store, clock: ManualClock
) -> None:
    await make_schedule(store)
    for _ in range(5):
        clock.advance(minutes(1))
        await asyncio.gather(plan(store), plan(second))
        claims = await asyncio.gather(*[claim(one) for one in (store, second) * 4])
        (only,) = [one for some in claims for one in some]
        await finish(store, only)
