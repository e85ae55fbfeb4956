"""Backfill on both databases: runs for past plan times, each once, and a ledger that stays exact."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.calendar.triggers import after, every
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.unique import Unique
from rota.core.ledger.backfill import Backfill, BackfillOrder, Ran
from rota.core.states import Outcome, RunState
from rota.errors import Invalid, JobDisabled
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, finish, tell
from tests.support.schedules.random_history import JOB
from tests.support.schedules.schedules import (
    MINUTE,
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


async def backfill(store: Store, clock: ManualClock, back: int, until: int = 0, **order: Any) -> Backfill:
    """Backfill from `back` minutes ago until `until` minutes ago, and verify the ledger afterwards."""
    now = clock.micros()
    done = await store.ledger.backfill("s", BackfillOrder(now - back * MINUTE, now - until * MINUTE, **order))
    found = await store.ledger.verify("s")
    assert found.ok, found.findings
    return done


async def away(store: Store, clock: ManualClock, length: int, **options: Any) -> None:
    """Run one minute, then skip so many minutes of which only the last one is run.

    The one before it is within its grace, and gives way to the newer one: a range with a reason of its own.
    """
    await make_schedule(store, job=JOB, catch_up="none", overlap="allow", **options)
    for passed in (1, length):
        clock.advance(minutes(passed))
        await plan(store)


async def test_missed_plan_times_get_runs_and_leave_their_range(store: Store, clock: ManualClock) -> None:
    await away(store, clock, 10)
    schedule = await get_schedule(store)
    assert await ranges_of(store, schedule) == [
        ("12:02:00", "12:09:00", 8, "missed"),
        ("12:10:00", "12:10:00", 1, "missed"),
    ]
    done = await backfill(store, clock, 7, 3)
    assert (done.count, done.already, done.pending, done.retried, done.dry_run) == (5, 0, 0, 0, False)
    assert len(done.runs) == 5
    assert done.plan_times[0] == instant(clock.micros() - 7 * MINUTE)
    assert await ranges_of(store, schedule) == [
        ("12:02:00", "12:03:00", 2, "missed"),
        ("12:09:00", "12:09:00", 1, "missed"),
        ("12:10:00", "12:10:00", 1, "missed"),
    ]
    made = [run for run in await runs_of(store) if "backfill" in run.tags]
    assert [f"{run.plan_time:%H:%M}" for run in made] == ["12:04", "12:05", "12:06", "12:07", "12:08"]
    again = await backfill(store, clock, 10)
    assert (again.count, again.already) == (4, 7)
    assert await ranges_of(store, schedule) == []
    assert (await backfill(store, clock, 10)).count == 0


async def test_a_dry_run_changes_nothing(store: Store, clock: ManualClock) -> None:
    await away(store, clock, 10)
    done = await backfill(store, clock, 60, dry_run=True)
    assert (done.count, done.already, done.runs, done.dry_run) == (59, 2, (), True)  # also before it was made
    assert len(await runs_of(store)) == 2


async def test_so_many_run_at_once(store: Store, clock: ManualClock) -> None:
    await away(store, clock, 10)
    await backfill(store, clock, 9, concurrency=2)
    assert len(await claim(store)) == 2  # the schedule's own
    held = await claim_limited(store)
    assert len(held) == 2
    assert await claim_limited(store) == []
    await finish(store, held[0])
    assert len(await claim_limited(store)) == 1


async def test_it_does_not_stand_in_the_way_of_the_schedule(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="none")
    clock.advance(minutes(10))
    await plan(store)
    for claimed in await claim(store):
        await finish(store, claimed)
    await backfill(store, clock, 9, concurrency=5)
    (held, *_) = await claim_limited(store)
    await tell(store, held, Outcome.FAILED)
    clock.advance(minutes(1))
    await plan(store)
    assert told(await runs_of(store))[-1] == ("12:11:00", "queued")


async def test_runs_that_failed_are_tried_again_as_new_runs(store: Store, clock: ManualClock) -> None:
    await away(store, clock, 1)
    first, second = await claim(store)
    await tell(store, first, Outcome.FAILED)
    await finish(store, second)
    assert (await backfill(store, clock, 1)).count == 0
    done = await backfill(store, clock, 1, ran=Ran.FAILED)
    assert (done.count, done.retried, done.already) == (1, 1, 1)
    (again,) = await store.get_runs(done.runs)
    assert again.retry_of == first.run_id
    assert again.schedule == "s"
    assert (await backfill(store, clock, 1, ran=Ran.FAILED)).count == 0, "it is under way"
    (held,) = await claim_limited(store)
    await finish(store, held)
    assert (await backfill(store, clock, 1, ran=Ran.FAILED)).count == 0, "it succeeded in the end"
    assert (await backfill(store, clock, 1, ran=Ran.ALL)).retried == 2


async def test_a_pause_that_was_backfilled_is_not_caught_up_with(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="all")
    await store.schedules.pause("s", "moving", "me", None)
    clock.advance(minutes(5))
    done = await backfill(store, clock, 4, 2)
    assert (done.count, done.pending) == (3, 0)
    assert (await get_schedule(store)).pause_reason == "moving"
    clock.advance(minutes(2))
    await store.schedules.resume("s", "all", "me")
    assert [time for time, _ in told(await runs_of(store))] == [
        "12:01:00", "12:02:00", "12:03:00", "12:06:00", "12:07:00",
    ]  # fmt: skip
    assert (await store.ledger.verify("s")).ok


async def test_what_is_due_is_left_to_the_planner(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    clock.advance(minutes(3))
    done = await backfill(store, clock, 2)
    assert (done.count, done.pending) == (0, 3)
    await plan(store)
    assert (await store.ledger.verify("s")).ok


async def test_after_its_end_there_is_nothing_to_backfill(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, max_runs=2, overlap="allow")
    for _ in range(5):
        clock.advance(minutes(1))
        await plan(store)
    for dry_run in (True, False):
        done = await backfill(store, clock, 6, dry_run=dry_run)
        assert (done.count, done.already, done.pending) == (2, 2, 0), "two before it was made"
    await store.pause_job("work", None, "me")
    clock.advance(minutes(2))
    done = await backfill(store, clock, 6)
    assert (done.count, done.already, done.pending) == (0, 2, 0), "nor while its job is paused"
    await store.resume_job("work", "skip", "me")
    clock.advance(minutes(2))
    assert (await backfill(store, clock, 8)).count == 0, "nor afterwards"
    await edit(store, "s", max_runs=4, overlap="allow")
    clock.advance(minutes(3))
    done = await backfill(store, clock, 12)
    assert (done.count, done.pending) == (0, 2), "those that it may still have"


async def test_coalesced_plan_times_have_run(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    clock.advance(minutes(5))
    await plan(store)
    done = await backfill(store, clock, 4)
    assert (done.count, done.already) == (0, 5)


async def test_plan_times_are_those_of_the_rule_as_it_is(store: Store, clock: ManualClock) -> None:
    await away(store, clock, 10)
    await edit(store, "s", every("5m"), scopes=[("shop", "a")])
    done = await backfill(store, clock, 11)
    assert done.count == 3  # 12:00 before it was made, 12:05 and 12:10 for a scope that it did not have
    assert await ranges_of(store, await get_schedule(store)) == [
        ("12:02:00", "12:09:00", 8, "missed"),
        ("12:10:00", "12:10:00", 1, "missed"),
    ]


async def test_scopes_that_are_not_alike_part_with_their_range(store: Store, clock: ManualClock) -> None:
    shops = [("shop", "a"), ("shop", "b")]
    await away(store, clock, 4, scopes=shops)
    await edit(store, "s", scopes=shops[:1])
    assert (await backfill(store, clock, 2, 1)).count == 2
    assert sorted(await ranges_of(store, await get_schedule(store))) == [
        ("12:02:00", "12:02:00", 1, "missed"),
        ("12:02:00", "12:03:00", 2, "missed"),
        ("12:04:00", "12:04:00", 1, "missed"),
    ]


async def test_payloads_are_filled_with_the_plan_time(store: Store, clock: ManualClock) -> None:
    await away(store, clock, 3, payload={"day": "{plan_time}"})
    (run,) = await store.get_runs((await backfill(store, clock, 1, 1)).runs)
    assert run.payload == {"day": "2025-06-16T12:03:00Z"}
    assert run.state is RunState.QUEUED


async def test_what_cannot_be_backfilled(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1s"))
    clock.advance(timedelta(days=1))
    await plan(store)
    with pytest.raises(Invalid, match="too many"):
        await store.ledger.backfill("s", BackfillOrder(0, clock.micros()))
    with pytest.raises(Invalid, match="runs are too many"):
        await store.ledger.backfill(
            "s", BackfillOrder(clock.micros() - 30 * 60 * MINUTE, clock.micros() - 24 * 60 * MINUTE)
        )
    await make_schedule(store, "f", trigger=after("1m"))
    with pytest.raises(Invalid, match="follows its own runs"):
        await store.ledger.backfill("f", BackfillOrder(0, clock.micros()))
    await store.save_jobs([JobDefinition(name="work", enabled=False)])
    with pytest.raises(JobDisabled):
        await store.ledger.backfill("s", BackfillOrder(0, clock.micros()))


async def test_two_backfills_and_a_planner_at_once_make_each_run_once(
    store: Store, second: Store, clock: ManualClock
) -> None:
    await away(store, clock, 30)
    clock.advance(minutes(5))
    now = clock.micros()
    order = BackfillOrder(now - 20 * MINUTE, now)
    one, two, _ = await asyncio.gather(
        store.ledger.backfill("s", order), second.ledger.backfill("s", order), plan(second)
    )
    assert one.count + two.count >= 15
    assert (await store.ledger.verify("s")).ok


async def test_the_limit_of_the_schedule_holds_for_its_backfill_too(store: Store, clock: ManualClock) -> None:
    await away(store, clock, 10, max_concurrency=2)
    await backfill(store, clock, 9, concurrency=5)
    held = await claim_limited(store)
    assert len(held) == 2, "whoever made them"
    await finish(store, held[0])
    assert len(await claim_limited(store)) == 1


@pytest.mark.parametrize("change", [{"unique": Unique()}, {"repeatable": False}])
async def test_unique_keys_hold_for_a_backfill_too(store: Store, clock: ManualClock, change: dict[str, Any]) -> None:
    await make_schedule(store, job=JOB, catch_up="none", overlap="allow")
    await store.save_jobs([msgspec.structs.replace(JOB, **change)])
    await store.schedules.pause("s", None, None, None)
    clock.advance(minutes(10))
    done = await backfill(store, clock, 8, 1, concurrency=5)
    assert (done.count, len(done.runs), done.held) == (1, 1, 7)
    (held,) = await claim_limited(store)
    assert (await backfill(store, clock, 8, 1)).count == 0
    await finish(store, held)
    again = await backfill(store, clock, 8, 1)
    assert again.count == (1 if "unique" in change else 0), "the next one, unless once was enough"


async def test_a_payload_that_differs_is_other_work(store: Store, clock: ManualClock) -> None:
    job = msgspec.structs.replace(JOB, unique=Unique())
    await make_schedule(store, job=job, catch_up="none", overlap="allow", payload={"at": "{plan_time}"})
    await store.schedules.pause("s", None, None, None)
    clock.advance(minutes(5))
    done = await backfill(store, clock, 3, concurrency=5)
    assert (done.count, done.held) == (4, 0)


@pytest.mark.parametrize("ran", [Ran.NONE, Ran.ALL])
async def test_repeated_after_an_unknown_outcome_it_gives_the_first_answer(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, ran: Ran
) -> None:
    await away(store, clock, 5)
    for claimed in await claim(store):
        await finish(store, claimed)
    before = len(await runs_of(store))
    whole = store.database.transact

    async def unheard(work: Any, **_: Any) -> Any:
        await whole(work)
        return await whole(work)

    monkeypatch.setattr(store.database, "transact", unheard)
    done = await backfill(store, clock, 4, ran=ran)
    assert done.count == len(done.runs) == (4 if ran is Ran.NONE else 5)
    assert len(await runs_of(store)) == before + done.count
    assert len(await store.get_runs(done.runs)) == done.count


async def test_a_tag_does_not_make_a_run_a_backfilled_one(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, tags=["backfill"])
    clock.advance(minutes(10))
    await plan(store)
    found = await store.ledger.verify("s")
    assert (found.ok, found.plan_times) == (True, 10), "those that it covers, too"
