"""Schedules changed while they are planned: nothing is made for an instant that was not named then, nothing is lost."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import define
from rota.engine.loops.declare import CODE, declare_schedules
from rota.errors import Conflict, DuplicateSchedule
from rota.registry.schedules import DeclaredSchedule, declared
from rota.store import Store
from rota.store.planning import plan as plans
from rota.store.planning.lanes import read_lanes
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.databases.transaction_crashes import Deaths
from tests.support.runs.runs import WORK, claim, finish
from tests.support.schedules.ledger_oracle import check_account, each, named_by_revisions, rows
from tests.support.schedules.schedules import (
    definition_of,
    edit,
    get_schedule,
    make_schedule,
    minutes,
    noon,
    plan,
    runs_of,
)

SEEDS = range(6)
OPTIONS: dict[str, Any] = {"overlap": "allow", "catch_up": "all"}


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def shake(store: Store, chance: random.Random) -> None:
    """One change that a person could make."""
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: edit(store, "s", every(f"{chance.choice([5, 7, 11, 60])}s"), **OPTIONS),
        lambda: store.schedules.pause("s", None, None, None),
        lambda: store.schedules.resume("s", chance.choice(["skip", "latest", "all"]), None),
        lambda: store.schedules.trigger("s", None, force=chance.random() < 0.5),
        lambda: store.pause_job("work", None, None),
        lambda: store.resume_job("work", chance.choice(["skip", "latest", "all"]), None),
    ]
    await chance.choice(acts)()


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_change_races_the_planners(store: Store, second: Store, clock: ManualClock, seed: int) -> None:
    chance = random.Random(seed)
    schedule = await make_schedule(store, trigger=every("7s"), **OPTIONS)
    for _ in range(15):
        clock.advance(timedelta(milliseconds=chance.randint(0, 40_000)))
        stores = [store, second]
        chance.shuffle(stores)
        racing = [plan(stores[0], 3), shake(stores[1], chance), plan(second, 3), shake(store, chance)]
        chance.shuffle(racing)
        await asyncio.gather(*racing)
    await store.resume_job("work", "skip", None)
    await store.schedules.resume("s", "skip", None)
    await plan(store)
    await check_account(store, schedule.id, await named_by_revisions(store, schedule.id, clock.micros()))


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_delete_races_the_planners(store: Store, second: Store, clock: ManualClock, seed: int) -> None:
    chance = random.Random(seed)
    schedule = await make_schedule(store, trigger=every("7s"), **OPTIONS)
    began = clock.micros()
    clock.advance(timedelta(seconds=chance.randint(1, 60)))
    await asyncio.gather(plan(second), store.schedules.delete("s", None), plan(store))
    deleted_at = clock.micros()
    heir = await make_schedule(second, trigger=every("5s"), **OPTIONS)
    clock.advance(minutes(5))
    await asyncio.gather(plan(second), plan(store))
    await check_account(store, schedule.id, each(timedelta(seconds=7), began, deleted_at))
    await check_account(store, heir.id, each(timedelta(seconds=5), deleted_at, clock.micros()))


@pytest.mark.parametrize("seed", SEEDS)
async def test_triggers_race_the_planner_and_overlap_holds(
    store: Store, second: Store, clock: ManualClock, seed: int
) -> None:
    chance = random.Random(seed)
    schedule = await make_schedule(store)
    began = clock.micros()

    async def trigger(one: Store) -> None:
        with suppress(Conflict):
            await one.schedules.trigger("s", None, force=False)

    for _ in range(8):
        clock.advance(timedelta(seconds=chance.randint(20, 90)))
        racing = [plan(store), trigger(second), plan(second), trigger(store)]
        chance.shuffle(racing)
        await asyncio.gather(*racing)
        claimed = await claim(store)
        assert len(claimed) <= 1, "one at a time"
        for one in claimed:
            await finish(store, one)
    await plan(store)
    await check_account(store, schedule.id, each(timedelta(minutes=1), began, clock.micros()))


@pytest.mark.parametrize("seed", range(8))
async def test_a_schedule_made_while_its_job_is_paused_plans_nothing(
    store: Store, second: Store, clock: ManualClock, seed: int
) -> None:
    chance = random.Random(seed)
    await store.save_jobs([WORK])
    definition = await definition_of(store, **OPTIONS)
    racing: list[Awaitable[object]] = [
        store.pause_job("work", None, None),
        second.schedules.create("s", definition, "test"),
    ]
    chance.shuffle(racing)
    await asyncio.gather(*racing)
    clock.advance(minutes(3))
    assert await plan(store) == 0
    assert (await get_schedule(store)).state == "job paused"
    await store.resume_job("work", "skip", None)
    clock.advance(minutes(1))
    assert await plan(store) == 1


async def test_a_schedule_given_to_a_paused_job_rests_and_goes_on_with_it(store: Store, clock: ManualClock) -> None:
    other = JobDefinition(name="other")
    await make_schedule(store, **OPTIONS)
    await store.save_jobs([other])
    await store.pause_job("other", None, None)
    definition = define(other, every("1m"), OPTIONS, name="s", now=clock.micros())
    await store.schedules.update("s", definition, Change(note="edited"))
    clock.advance(minutes(2))
    assert await plan(store) == 0, "its job is paused"
    await store.resume_job("other", "skip", None)
    clock.advance(minutes(1))
    assert await plan(store) == 1


async def test_a_schedule_taken_from_a_paused_job_goes_on(store: Store, clock: ManualClock) -> None:
    other = JobDefinition(name="other")
    await make_schedule(store, **OPTIONS)
    await store.save_jobs([other])
    await store.pause_job("work", None, None)
    definition = define(other, every("1m"), OPTIONS, name="s", now=clock.micros())
    await store.schedules.update("s", definition, Change(note="edited"))
    clock.advance(minutes(1))
    assert await plan(store) == 1, "its job is not paused"


async def declarations(step: str = "1m", count: int = 5) -> list[DeclaredSchedule]:
    return [
        declared(f"s{number}", define(WORK, every(step), OPTIONS, name=f"s{number}", now=0)) for number in range(count)
    ]


async def revisions(store: Store) -> dict[str, int]:
    found = await rows(
        store,
        "select s.name, count(*) from rota_schedule s join rota_revision r on r.schedule_id = s.id group by s.name",
    )
    return dict(found)  # type: ignore[arg-type]


async def test_ten_deploys_at_once_change_nothing_twice(store: Store, second: Store, clock: ManualClock) -> None:
    await store.save_jobs([WORK])
    for step, number in (("1m", 1), ("2m", 2), ("2m", 2), ("3m", 3)):
        wanted = await declarations(step)
        await asyncio.gather(*[declare_schedules((store, second)[turn % 2], wanted) for turn in range(10)])
        assert await revisions(store) == {f"s{n}": number for n in range(5)}, step
        clock.advance(minutes(1))


async def test_a_deploy_keeps_what_people_did(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([WORK])
    await declare_schedules(store, await declarations())
    await store.schedules.pause("s0", "not now", "ada", None)
    await edit(store, "s1", every("5m"), **OPTIONS)
    await asyncio.gather(*[declare_schedules(store, await declarations()) for _ in range(3)])
    assert (await get_schedule(store, "s0")).state == "paused"
    assert (await get_schedule(store, "s1")).definition.rule.trigger == every("5m")
    await declare_schedules(store, await declarations("10m"))
    paused = await get_schedule(store, "s0")
    assert (paused.state, paused.pause_reason, paused.paused_by) == ("paused", "not now", "ada")
    for name in ("s0", "s1"):
        assert (await get_schedule(store, name)).definition.rule.trigger == every("10m")
    clock.advance(minutes(20))
    await plan(store)
    assert await runs_of(store, "s0") == []


async def test_a_deploy_leaves_alone_what_belongs_to_others(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "s0", every("7m"))
    await declare_schedules(store, await declarations(count=2))
    assert (await get_schedule(store, "s0")).owner == "test"
    assert (await get_schedule(store, "s0")).definition.rule.trigger == every("7m")
    assert (await get_schedule(store, "s1")).owner == CODE


async def test_a_program_starts_although_what_it_declares_is_over(
    store: Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await store.save_jobs([WORK])
    end_at = instant(clock.micros()) + minutes(5)
    wanted = [declared("s", define(WORK, every("1m"), {"end_at": end_at}, name="s", now=clock.micros()))]
    await declare_schedules(store, wanted)
    clock.advance(minutes(10))
    await declare_schedules(store, wanted)
    assert not caplog.records
    await store.schedules.delete("s", None)
    await declare_schedules(store, wanted)
    assert "schedule 's': end_at: it is over" in caplog.text
    assert await store.schedules.names() == []


async def test_a_schedule_that_is_deleted_while_it_is_deployed_does_not_stop_the_start(
    store: Store, second: Store, clock: ManualClock
) -> None:
    await store.save_jobs([WORK])
    for turn in range(4):
        await declare_schedules(store, await declarations())
        await asyncio.gather(
            declare_schedules(store, await declarations(f"{turn + 2}m")),
            *[second.schedules.delete(f"s{number}", None) for number in range(5)],
        )
    await declare_schedules(store, await declarations())
    assert await store.schedules.names() == [f"s{number}" for number in range(5)]


async def test_changes_whose_answer_was_lost_may_be_repeated(store: Store, second: Store, clock: ManualClock) -> None:
    """As the database does by itself when a connection breaks: the same work again, with the same id."""
    await store.save_jobs([WORK])
    doubled(second)
    await second.schedules.create("s", await definition_of(store, **OPTIONS), "test")
    assert await revisions(store) == {"s": 1}
    clock.advance(minutes(3))
    await second.schedules.pause("s", None, None, None)
    clock.advance(minutes(1))
    await second.schedules.resume("s", "all", None)
    clock.advance(minutes(1))
    await edit(second, "s", every("7s"), **OPTIONS)
    clock.advance(minutes(1))
    await plan(second)
    schedule = await get_schedule(store)
    await check_account(store, schedule.id, await named_by_revisions(store, schedule.id, clock.micros()))
    with pytest.raises(DuplicateSchedule):
        await second.schedules.create("s", await definition_of(store), "test")
    await second.schedules.delete("s", None)
    assert await store.schedules.get("s") is None


def doubled(store: Store) -> None:
    """Every transaction of this store is done twice, and the second answer counts."""
    transact = Deaths(store)._transact

    async def twice(work: object, **options: object) -> object:
        await transact(work, **options)  # type: ignore[arg-type]
        return await transact(work, **options)  # type: ignore[arg-type]

    store.database.transact = twice  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize("overlap", ["queue_one", "queue_all"])
async def test_a_queued_run_that_is_cancelled_while_its_follower_is_planned(
    store: Store, second: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, overlap: str
) -> None:
    """Between what planning saw of the lane and what it does about it."""
    await make_schedule(store, overlap=overlap)
    clock.advance(minutes(1))
    await plan(store)
    (first,) = await claim(store)
    clock.advance(minutes(1))
    await plan(store)
    waiting = (await runs_of(store))[1].id
    seen = asyncio.Event()
    if store.database.dialect.name == "postgres":  # on SQLite nobody comes between

        async def meanwhile(*arguments: Any) -> Any:
            found = await read_lanes(*arguments)
            if not seen.is_set():
                seen.set()
                await second.cancel(waiting, None, None)
            return found

        monkeypatch.setattr(plans, "read_lanes", meanwhile)
    else:
        await second.cancel(waiting, None, None)
    clock.advance(minutes(1))
    await plan(store)
    assert await claim(store) == [], "the first one still runs"
    await finish(store, first)
    await store.tidy()
    clock.advance(minutes(1))
    await plan(store)
    assert len(await claim(store)) == 1
