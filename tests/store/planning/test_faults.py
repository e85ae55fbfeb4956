"""Planners that die, race and meet what cannot be planned: every plan time still has exactly one run or record."""

import asyncio
import random
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from rota.core.calendar.triggers import after, cron, every
from rota.core.jobs.job import JobDefinition
from rota.core.states import Outcome
from rota.errors import Unavailable
from rota.store import Store
from rota.values.instants import instant
from rota.values.scope import GLOBAL, Scope
from tests.support.clock import ManualClock
from tests.support.databases.transaction_crashes import Deaths, Died, Moment
from tests.support.runs.runs import claim, finish, put, tell
from tests.support.schedules.ledger_oracle import SECOND, change, check_account, each, rows
from tests.support.schedules.schedules import get_schedule, make_schedule, minutes, noon, plan, runs_of, told
from tests.support.wait import until

MINUTE = timedelta(minutes=1)
TENANTS = (Scope("tenant", "a"), Scope("tenant", "b"))


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def make_all_kinds(store: Store) -> dict[str, str]:
    """Schedules whose planning uses every statement that planning has; id by name."""
    wide: dict[str, Any] = {"catch_up": {"mode": "all", "window": "2m"}, "overlap": "allow"}
    made = [
        await make_schedule(store, "plain", overlap="allow"),
        await make_schedule(store, "narrow", every("20s"), catch_up={"mode": "latest", "window": "1m"}),
        await make_schedule(store, "all", every("30s"), **wide),
        await make_schedule(store, "failing", failure={"mode": "retry", "max_attempts": 3}),
        await make_schedule(store, "queued", overlap="queue_one"),
        await make_schedule(store, "cancelling", overlap="cancel_previous"),
        await make_schedule(store, "scoped", scopes="tenants", overlap="allow"),
        await make_schedule(store, "late", delay="15s", overlap="allow"),
        await make_schedule(store, "limited", overlap="allow", max_concurrency=2, when_full="skip"),
    ]
    return {one.name: one.id for one in made}


async def check_all_kinds(store: Store, ids: dict[str, str], began: int, now: int) -> None:
    steps = {"narrow": timedelta(seconds=20), "all": timedelta(seconds=30)}
    for name, id in ids.items():
        scopes = TENANTS if name == "scoped" else (GLOBAL,)
        delay = timedelta(seconds=15 if name == "late" else 0)
        until = now - delay // timedelta(microseconds=1)
        await check_account(store, id, each(steps.get(name, MINUTE), began, until), scopes, delay=delay)


async def work_a_little(store: Store, random: random.Random) -> None:
    """Some runs end well, some do not, some stay."""
    for one in await claim(store, 6):
        outcome = random.choice([Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED, None])
        if outcome is not None:
            await tell(store, one, outcome)


async def plan_all(store: Store) -> bool:
    """Not as long as PostgreSQL has not noticed that a planner is dead: it still holds its rows."""
    await plan(store, tenants=TENANTS)
    next_in = (await store.planning.look(["tenants"])).next_in
    return next_in is None or next_in > 0


@pytest.mark.parametrize("moment", ["before", "after", "unanswered"])
async def test_a_planner_may_die_at_any_statement(
    store: Store, second: Store, clock: ManualClock, moment: Moment
) -> None:
    ids = await make_all_kinds(store)
    began = clock.micros()
    deaths, chance = Deaths(second), random.Random(moment)
    number, died = 0, True
    while died:
        clock.advance(timedelta(seconds=chance.choice([60, 90, 200])))
        deaths.at(number, moment)
        with suppress(Died, Unavailable):
            await plan(second, tenants=TENANTS)
        died, number = deaths.died, number + 1
        await until(lambda: plan_all(store))
        await check_all_kinds(store, ids, began, clock.micros())
        await work_a_little(store, chance)
    assert number > (15 if moment != "unanswered" else 2), "it died at many places"


@pytest.mark.parametrize("seed", range(3))
async def test_three_planners_with_random_batches_for_many_ticks(
    store: Store, second: Store, clock: ManualClock, seed: int
) -> None:
    chance = random.Random(seed)
    ids = await make_all_kinds(store)
    for number in range(25):
        schedule = await make_schedule(store, f"more{number}", overlap="allow")
        ids[schedule.name] = schedule.id
    began = clock.micros()

    async def planner(one: Store) -> None:
        for _ in range(chance.randint(1, 4)):
            await one.planning.plan(chance.randint(1, 9), {"tenants": TENANTS})

    for _ in range(12):
        clock.advance(timedelta(seconds=chance.randint(1, 150)))
        await asyncio.gather(*[planner(one) for one in (store, second, store)])
        await work_a_little(second, chance)
    await plan(store, tenants=TENANTS)
    await check_all_kinds(store, ids, began, clock.micros())


async def test_oban_1488_a_planner_with_old_knowledge_fires_nothing_twice(
    store: Store, second: Store, clock: ManualClock
) -> None:
    """One that was frozen in its transaction commits long after another one has gone on, or not at all."""
    schedule = await make_schedule(store, overlap="allow")
    began = clock.micros()
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(second)
    stale = await rows(store, "select cursor_at, next_plan from rota_schedule_now where id = :id", id=schedule.id)
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(second)
    # What such a leader believes is written over the row; the keys of the runs still hold.
    back = (
        "update rota_cursor set cursor_at = :cursor, next_plan = :next, next_at = :next "
        "where no = (select cursor_no from rota_schedule where id = :id)"
    )
    await change(store, back, cursor=stale[0][0], next=stale[0][1], id=schedule.id)
    for _ in range(3):
        clock.advance(minutes(1))
        await asyncio.gather(plan(store), plan(second))
    found = await rows(store, "select plan_time, count(*) from rota_run group by plan_time having count(*) > 1")
    assert found == []
    assert {run.plan_time for run in await runs_of(store)} == {
        instant(at) for at in each(MINUTE, began, clock.micros())
    }


async def put_by_hand(store: Store, schedule_id: str, plan_time: int) -> str:
    run_id = await put(store)
    await change(
        store,
        "update rota_run set schedule_id = :schedule, plan_time = :at where id = :id",
        schedule=schedule_id, at=plan_time, id=run_id,
    )  # fmt: skip
    return run_id


async def test_a_run_that_is_there_already_does_not_wedge_the_batch(store: Store, clock: ManualClock) -> None:
    taken = await make_schedule(store, "taken", overlap="queue_all")
    await make_schedule(store, "free")
    began = clock.micros()
    clock.advance(minutes(1))
    there = await put_by_hand(store, taken.id, clock.micros())
    await plan(store)
    assert [run.id for run in await runs_of(store, "taken")] == [there]
    assert len(await runs_of(store, "free")) == 1
    clock.advance(minutes(1))
    await plan(store)
    await check_account(store, taken.id, each(MINUTE, began, clock.micros()))
    assert len(await claim(store)) >= 2, "what was made can be claimed"


async def test_a_follower_whose_plan_time_was_taken_goes_on(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, trigger=after("10s"))
    clock.advance(timedelta(seconds=1))
    (due,) = (await rows(store, "select next_plan from rota_schedule_now where id = :id", id=schedule.id))[0]
    there = await put_by_hand(store, schedule.id, due)
    await plan(store)
    for one in await claim(store):
        assert one.run_id == there
        await finish(store, one)
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert len(await runs_of(store)) > 1, "it does not wait for a run that never was"


REVISED = "update rota_schedule set revision = revision + 1, definition = "
TROUBLES = {
    "job gone": "delete from rota_job where name = 'odd'",
    "broken text": REVISED + "'{\"job\": 7' where name = 'odd'",
    "other shape": REVISED + "'{\"job\": \"odd\"}' where name = 'odd'",
    "unknown zone": REVISED + "replace(definition, 'Berlin', 'Nowhere') where name = 'odd'",
    "bad rule": REVISED + "replace(definition, '* * * *', '99 * * *') where name = 'odd'",
    "unknown option": REVISED + "replace(definition, '\"tags\"', '\"togs\"') where name = 'odd'",
    "broken job": "update rota_job set definition = '{' where name = 'odd'",
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_what_cannot_be_planned_blocks_nobody_and_says_why(
    store: Store, clock: ManualClock, trouble: str
) -> None:
    trigger = cron("* * * * *", "Europe/Berlin")
    odd = await make_schedule(store, "odd", trigger, job=JobDefinition(name="odd"), tags=["x"])
    good = await make_schedule(store, "good", overlap="allow")
    began = clock.micros()
    (text,) = (await rows(store, "select definition from rota_schedule where name = 'odd'"))[0]
    await change(store, TROUBLES[trouble])
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    await check_account(store, good.id, each(MINUTE, began, clock.micros()))
    (why,) = (await rows(store, "select trouble from rota_schedule_now where name = 'odd'"))[0]
    assert why, "its trouble is shown"
    assert await runs_of(store, "odd") == []
    await change(store, REVISED + ":text where name = 'odd'", text=text)
    await change(store, "delete from rota_job where name = 'odd'")
    await store.save_jobs([JobDefinition(name="odd")])
    clock.advance(minutes(1))
    await plan(store)
    assert (await get_schedule(store, "odd")).trouble is None, "healed, it goes on"
    await check_account(store, odd.id, each(MINUTE, began, clock.micros()))


async def test_a_pause_of_an_unreadable_schedule_that_is_to_end_blocks_nobody(store: Store, clock: ManualClock) -> None:
    good = await make_schedule(store, "good", overlap="allow")
    await make_schedule(store, "odd", job=JobDefinition(name="odd"))
    await store.schedules.pause("odd", None, None, clock.micros() + SECOND)
    began = clock.micros()
    await change(store, TROUBLES["broken text"])
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    await check_account(store, good.id, each(MINUTE, began, clock.micros()))
    assert (await rows(store, "select trouble from rota_schedule_now where name = 'odd'"))[0][0]


async def test_kubernetes_42649_any_number_of_missed_fires_is_few_statements(store: Store, clock: ManualClock) -> None:
    """A year without a planner, a fire each second: it is planned in a moment, counted exactly, and goes on."""
    schedule = await make_schedule(store, trigger=cron("* * * * * *"), overlap="allow")
    deaths = Deaths(store)
    deaths.never()
    clock.advance(timedelta(days=365))
    spent = time.process_time()
    await plan(store)
    assert time.process_time() - spent < 2
    assert deaths.statements < 40
    (run,) = await rows(
        store, "select plan_time, covers_from, missed_count from rota_run where schedule_id = :id", id=schedule.id
    )
    ((first, last, count),) = await rows(
        store, "select from_at, to_at, count from rota_range where schedule_id = :id", id=schedule.id
    )
    assert run[0] == clock.micros()
    assert run[0] - run[1] == run[2] * SECOND
    assert (last - first) // SECOND + 1 == count
    assert last + SECOND == run[1]
    assert count + run[2] + 1 == 365 * 86_400
    clock.advance(timedelta(seconds=1))
    assert await plan(store) == 1


@pytest.mark.parametrize("mode", ["none", "latest", "all"])
async def test_an_outage_of_any_length_is_accounted_for(store: Store, clock: ManualClock, mode: str) -> None:
    chance = random.Random(mode)
    policy = {"mode": mode, "window": "10m", "keep": 7, "per_tick": 3} if mode == "all" else {"mode": mode}
    schedule = await make_schedule(store, trigger=every("20s"), catch_up=policy, overlap="allow")
    began = clock.micros()
    for _ in range(6):
        clock.advance(timedelta(seconds=chance.randint(1, 3_000)))
        await plan(store)
        await check_account(store, schedule.id, each(timedelta(seconds=20), began, clock.micros()))


async def test_a_clock_that_goes_back_plans_nothing_twice(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, trigger=every("10s"), overlap="allow", catch_up="all")
    began = furthest = clock.micros()
    cursor = 0
    for seconds in (35, -120, 30, 100, -3_600, 5, 3_650, -1, 1, 60):
        clock.advance(timedelta(seconds=seconds))
        await plan(store)
        ((now,),) = await rows(store, "select cursor_at from rota_schedule_now where id = :id", id=schedule.id)
        assert now >= cursor, "the cursor goes forward only"
        cursor, furthest = now, max(furthest, clock.micros())
    found = await rows(store, "select plan_time from rota_run order by plan_time")
    assert [row[0] for row in found] == each(timedelta(seconds=10), began, furthest)


async def test_changes_while_the_clock_is_back_name_nothing_again(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, trigger=every("10s"), overlap="allow", catch_up="all")
    clock.advance(timedelta(seconds=95))
    await plan(store)
    before = {run.plan_time for run in await runs_of(store)}
    clock.advance(timedelta(seconds=-60))
    await store.schedules.pause("s", None, None, None)
    clock.advance(timedelta(seconds=10))
    await store.schedules.resume("s", "all", None)
    await plan(store)
    await store.schedules.pause("s", None, None, None)
    await store.schedules.resume("s", "skip", None)
    assert {run.plan_time for run in await runs_of(store)} == before
    clock.advance(timedelta(seconds=60))
    await plan(store)
    runs = await runs_of(store)
    assert len({run.plan_time for run in runs}) == len(runs)
    assert told(runs)[-1][0] == "12:01:40"
    assert (await get_schedule(store)).cursor_at >= schedule.cursor_at
