"""Planning on both databases: due schedules become runs, once, with the cursor in the same transaction."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from rota.core.calendar.triggers import Trigger, after, cron, every, following, once
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.core.states import Outcome, RunState
from rota.errors import BadTrigger, DuplicateSchedule, Overlapping, UnknownSchedule
from rota.store import Store
from rota.values.instants import instant
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, finish, put, tell
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


async def test_a_due_plan_time_gets_one_run(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    assert await plan(store) == 0
    clock.advance(minutes(1))
    assert await plan(store) == 1
    assert await plan(store) == 0
    (run,) = await runs_of(store)
    assert (run.state, run.schedule, run.plan_time) == (RunState.QUEUED, "s", instant(clock.micros()))


async def test_three_planners_at_once_make_each_run_once(store: Store, second: Store, clock: ManualClock) -> None:
    for number in range(30):
        await make_schedule(store, f"s{number:02}")
    for _ in range(3):
        clock.advance(minutes(1))
        await asyncio.gather(*[plan(planner, limit=7) for planner in (store, second, store)])
        for claimed in await claim(store):
            await finish(store, claimed)
    for number in range(30):
        assert told(await runs_of(store, f"s{number:02}")) == [
            ("12:01:00", "succeeded"),
            ("12:02:00", "succeeded"),
            ("12:03:00", "succeeded"),
        ]


async def test_an_earlier_run_that_is_not_over_makes_the_next_one_skip(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert told(await runs_of(store)) == [("12:01:00", "queued"), ("12:02:00", "skipped"), ("12:03:00", "skipped")]
    (claimed,) = await claim(store)
    await finish(store, claimed)
    clock.advance(minutes(1))
    await plan(store)
    assert told(await runs_of(store))[-1] == ("12:04:00", "queued")


async def test_the_latest_covers_the_older_ones(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    clock.advance(minutes(10))
    await plan(store)
    (run,) = await runs_of(store)
    assert (run.missed_count, run.covers_from) == (9, instant(clock.micros()) - minutes(9))


async def test_beyond_the_window_it_is_missed_as_one_range(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, catch_up={"mode": "latest", "window": "5m"})
    clock.advance(minutes(10))
    await plan(store)
    (run,) = await runs_of(store)
    assert run.missed_count == 5
    assert await ranges_of(store, schedule) == [("12:01:00", "12:04:00", 4, "missed")]


async def test_all_of_them_in_bites_oldest_first(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up={"mode": "all", "keep": 5, "per_tick": 2}, overlap="allow")
    clock.advance(minutes(8))
    assert (await store.planning.plan(10, {})).runs == 2
    assert await plan(store) == 3
    assert [when for when, _ in told(await runs_of(store))] == [
        "12:04:00", "12:05:00", "12:06:00", "12:07:00", "12:08:00",
    ]  # fmt: skip


async def test_a_year_of_a_per_second_schedule_is_one_range(store: Store, clock: ManualClock) -> None:
    schedule = await make_schedule(store, trigger=cron("* * * * * *", "Europe/Berlin"))
    clock.advance(timedelta(days=365))
    await plan(store)
    (run,) = await runs_of(store)
    ((_, _, count, kind),) = await ranges_of(store, schedule)
    assert (run.missed_count + 1 + count, kind) == (365 * 86_400, "missed")


async def test_after_follows_the_end_of_its_run(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("10m"))
    clock.advance(timedelta(seconds=1))
    await plan(store)
    (claimed,) = await claim(store)
    clock.advance(minutes(60))
    assert await plan(store) == 0
    await finish(store, claimed)
    await plan(store)
    assert (await get_schedule(store)).next_plan == instant(clock.micros()) + minutes(10)
    clock.advance(minutes(10))
    assert await plan(store) == 1


async def test_once_in_the_past_is_due_at_once_and_never_again(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=once(instant(clock.micros()) - minutes(5)))
    assert await plan(store) == 1
    clock.advance(minutes(60))
    assert await plan(store) == 0
    assert (await get_schedule(store)).state == "ended"


async def test_max_runs_ends_it(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, max_runs=2, overlap="allow")
    for _ in range(4):
        clock.advance(minutes(1))
        await plan(store)
    assert len(await runs_of(store)) == 2
    assert (await get_schedule(store)).state == "ended"


async def test_delay_is_waited_for_and_jitter_is_in_the_run(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1h"), delay="5m", jitter="10m")
    clock.advance(minutes(64))
    assert await plan(store) == 0
    clock.advance(minutes(1))
    assert await plan(store) == 1
    (run,) = await runs_of(store)
    assert run.plan_time is not None
    assert minutes(5) <= run.run_at - run.plan_time <= minutes(15)


async def test_each_scope_has_its_lane(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes=[("tenant", "a"), ("tenant", "b")], payload={"to": "{scope.id}"})
    clock.advance(minutes(1))
    await plan(store)
    runs = await runs_of(store)
    assert [(run.scope.id, run.payload["to"]) for run in runs] == [("a", "a"), ("b", "b")]
    first, _ = await claim(store)
    await finish(store, first)
    clock.advance(minutes(1))
    await plan(store)
    states = {(run.scope.id, f"{run.plan_time:%M}"): run.state.value for run in await runs_of(store)}
    done, waiting = ("a", "b") if states["a", "01"] == "succeeded" else ("b", "a")
    assert (states[done, "02"], states[waiting, "02"]) == ("queued", "skipped")


async def test_a_provider_is_needed_and_new_scopes_get_no_catch_up(store: Store, clock: ManualClock) -> None:
    a, b = Scope("tenant", "a"), Scope("tenant", "b")
    await make_schedule(store, scopes="tenants", catch_up="all", overlap="allow")
    clock.advance(minutes(2))
    assert await plan(store) == 0
    assert await plan(store, tenants=(a,)) == 2
    clock.advance(minutes(3))
    assert await plan(store, tenants=(a, b)) == 4
    assert [f"{run.plan_time:%M}" for run in await runs_of(store) if run.scope == b] == ["05"]


async def test_a_failure_is_remembered_until_the_next_success(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work")
    await make_schedule(store, job=job, failure="skip")
    for outcome in (Outcome.FAILED, None, Outcome.SUCCEEDED, Outcome.SUCCEEDED):
        clock.advance(minutes(1))
        await plan(store)
        if outcome is not None:
            (claimed,) = await claim(store)
            await tell(store, claimed, outcome)
    assert [state for _, state in told(await runs_of(store))] == ["failed", "skipped", "succeeded", "succeeded"]


async def test_failure_retry_counts_attempts_and_starts_anew(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, failure={"mode": "retry", "max_attempts": 3})
    for _ in range(4):
        clock.advance(minutes(1))
        await plan(store)
        (claimed,) = await claim(store)
        assert claimed.max_attempts == claimed.attempt  # its own retries are off
        await tell(store, claimed, Outcome.FAILED)
    assert [run.attempt for run in await runs_of(store)] == [1, 2, 3, 1]


async def test_failure_pause_pauses(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, failure="pause")
    clock.advance(minutes(1))
    await plan(store)
    (claimed,) = await claim(store)
    await tell(store, claimed, Outcome.FAILED)
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert [state for _, state in told(await runs_of(store))] == ["failed", "skipped"]
    schedule = await get_schedule(store)
    assert (schedule.state, schedule.paused_by) == ("paused", "planner")


async def test_an_edit_lets_the_old_rule_decide_what_was_due(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="allow", delay="30s")
    clock.advance(timedelta(seconds=70))  # 12:01:00 is named, and its delay not over
    await edit(store, "s", every("1h"), overlap="allow")
    (run,) = await runs_of(store)
    assert (f"{run.plan_time:%H:%M:%S}", f"{run.run_at:%H:%M:%S}") == ("12:01:00", "12:01:30")
    clock.advance(minutes(50))
    assert await plan(store) == 0
    clock.advance(minutes(10))
    assert await plan(store) == 1
    assert (await get_schedule(store)).revision == 2


@pytest.mark.parametrize(("mode", "expected"), [("skip", 0), ("latest", 1), ("all", 10)])
async def test_resuming_after_a_pause(store: Store, clock: ManualClock, mode: str, expected: int) -> None:
    await make_schedule(store, overlap="allow")
    await store.schedules.pause("s", "a reason", "somebody", None)
    paused = await get_schedule(store)
    assert (paused.state, paused.pause_reason, paused.paused_by) == ("paused", "a reason", "somebody")
    clock.advance(minutes(10))
    assert await plan(store) == 0
    await store.schedules.resume("s", mode, None)
    assert len(await runs_of(store)) == expected
    assert await plan(store) == 0
    clock.advance(minutes(1))
    assert await plan(store) == 1


async def test_a_pause_with_an_end_ends_by_itself(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="allow")
    await store.schedules.pause("s", None, None, clock.micros() + 150_000_000)
    for _ in range(4):
        clock.advance(minutes(1))
        await plan(store)
    assert [when for when, _ in told(await runs_of(store))] == ["12:04:00"]


async def test_a_deleted_name_can_be_used_again(store: Store, clock: ManualClock) -> None:
    first = await make_schedule(store)
    with pytest.raises(DuplicateSchedule):
        await make_schedule(store)
    await store.schedules.delete("s", None)
    with pytest.raises(UnknownSchedule):
        await store.schedules.pause("s", None, None, None)
    clock.advance(minutes(5))
    assert await plan(store) == 0
    assert (await make_schedule(store)).id != first.id


async def test_a_triggered_run_obeys_overlap_unless_forced(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    (first,) = await store.schedules.trigger("s", None, force=False)
    with pytest.raises(Overlapping, match=first.id):
        await store.schedules.trigger("s", None, force=False)
    await store.schedules.trigger("s", None, force=True)
    clock.advance(minutes(1))
    await plan(store)
    assert told(await runs_of(store)) == [("12:01:00", "skipped"), ("-", "queued"), ("-", "queued")]


async def test_a_disabled_job_is_skipped_and_told(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    await store.save_jobs([JobDefinition(name="work", enabled=False)])
    clock.advance(minutes(1))
    await plan(store)
    (run,) = await runs_of(store)
    assert (run.state.value, run.reason) == ("skipped", "job 'work' is disabled")


async def test_once_long_over_is_refused(store: Store, clock: ManualClock) -> None:
    with pytest.raises(BadTrigger, match="once: it is over"):
        await make_schedule(store, trigger=once(instant(clock.micros()) - timedelta(days=2)))


@pytest.mark.parametrize("trigger", [every("1h"), cron("0 * * * *"), after("1h"), following("work")])
async def test_a_new_schedule_that_is_over_is_refused(store: Store, clock: ManualClock, trigger: Trigger) -> None:
    job, end_at = JobDefinition(name="other"), instant(clock.micros()) + minutes(90)
    await store.save_jobs([JobDefinition(name="work")])
    await make_schedule(store, trigger=trigger, job=job, end_at=end_at)
    clock.advance(minutes(91))
    with pytest.raises(BadTrigger, match="end_at: it is over") as refused:
        await make_schedule(store, "late", trigger, job=job, end_at=end_at)
    assert refused.value.field == "end_at"
    with pytest.raises(DuplicateSchedule):
        await make_schedule(store, trigger=trigger, job=job, end_at=end_at)
    assert await store.schedules.names() == ["s"]


async def test_a_schedule_that_stands_may_be_ended(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    await edit(store, "s", end_at=instant(clock.micros()) - minutes(1))
    assert (await get_schedule(store)).state == "ended"


async def test_queued_plan_times_run_one_after_the_other(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="all")  # overlap is queue_all then
    clock.advance(minutes(3))
    assert await plan(store) == 3
    assert [state for _, state in told(await runs_of(store))] == ["queued", "scheduled", "scheduled"]
    for _ in range(3):
        (claimed,) = await claim(store)
        assert not await claim(store)
        await finish(store, claimed)
    assert [state for _, state in told(await runs_of(store))] == ["succeeded"] * 3


async def test_a_queued_run_waits_also_while_the_one_before_backs_off(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="queue_one")
    clock.advance(minutes(1))
    await plan(store)
    (first,) = await claim(store)
    await tell(store, first, Outcome.FAILED, retry_in=300_000_000)
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    assert not await claim(store)
    clock.advance(minutes(5))
    await store.promote(10)
    (again,) = await claim(store)
    assert again.run_id == first.run_id
    await finish(store, again)
    (second,) = await claim(store)
    assert [state for _, state in told(await runs_of(store))] == ["succeeded", "running", "skipped"]
    await finish(store, second)


async def test_cancel_previous_ends_what_waits_and_waits_for_what_runs(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="cancel_previous")
    clock.advance(minutes(1))
    await plan(store)
    (first,) = await claim(store)
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    runs = await runs_of(store)
    assert [run.state.value for run in runs] == ["cancelling", "skipped", "scheduled"]
    assert runs[1].reason == f"superseded by run {runs[2].id}"
    assert not await claim(store)
    await tell(store, first, Outcome.CANCELLED)
    (last,) = await claim(store)
    assert last.run_id == runs[2].id
    await finish(store, last)


async def test_of_several_at_once_cancel_previous_leaves_the_last(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="all", overlap="cancel_previous")
    clock.advance(minutes(3))
    await plan(store)
    assert [state for _, state in told(await runs_of(store))] == ["skipped", "skipped", "queued"]


async def test_a_policy_cancel_is_no_failure_and_a_persons_is(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="cancel_previous", failure="skip")
    clock.advance(minutes(1))
    await plan(store)
    (first,) = await claim(store)
    clock.advance(minutes(1))
    await plan(store)
    await tell(store, first, Outcome.CANCELLED)
    (second,) = await claim(store)
    await store.cancel(second.run_id, "enough", "somebody")
    await tell(store, second, Outcome.CANCELLED)
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    assert [state for _, state in told(await runs_of(store))] == ["cancelled", "cancelled", "skipped", "queued"]


async def test_a_schedules_limit_holds_over_all_its_scopes(store: Store, clock: ManualClock) -> None:
    scopes = [("tenant", name) for name in "abcde"]
    await make_schedule(store, scopes=scopes, max_concurrency=2)
    clock.advance(minutes(1))
    await plan(store)
    done = []
    while claimed := await claim_limited(store):
        assert len(claimed) <= 2
        done += claimed
        for one in claimed:
            await finish(store, one)
    assert len(done) == 5


async def test_a_limit_that_skips_skips_plan_times(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="allow", catch_up="all", max_concurrency=2, when_full="skip")
    clock.advance(minutes(4))
    await plan(store)
    runs = await runs_of(store)
    assert [run.state.value for run in runs] == ["queued", "queued", "skipped", "skipped"]
    assert "is full" in (runs[-1].reason or "")


async def test_parallel_ignores_the_jobs_own_limit_up_to_its_own(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", limits=(Limit(max=1),))
    await make_schedule(store, job=job, overlap={"mode": "parallel", "max_overlap": 2})
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert len(await claim(store)) == 1
    assert len(await claim_limited(store)) == 1
    assert [state for _, state in told(await runs_of(store))] == ["running", "running", "skipped"]


async def test_a_unique_job_whose_work_is_waiting_is_skipped(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", unique=Unique())
    await make_schedule(store, job=job)
    holder = await put(store, job)
    clock.advance(minutes(1))
    await plan(store)
    (run,) = await runs_of(store)
    assert (run.state.value, run.reason) == ("skipped", f"unique: run {holder} does this work")
    (claimed,) = await claim(store)
    await finish(store, claimed)
    clock.advance(minutes(1))
    await plan(store)
    assert told(await runs_of(store))[-1] == ("12:02:00", "queued")


async def test_a_manual_retry_is_for_the_same_plan_time_and_in_the_same_lane(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    clock.advance(minutes(1))
    await plan(store)
    (claimed,) = await claim(store)
    await tell(store, claimed, Outcome.FAILED)
    copy = await store.copy_of(claimed.run_id)
    await store.enqueue([msgspec.structs.replace(copy, id=store.new_id(), retry_of=claimed.run_id)])
    clock.advance(minutes(1))
    await plan(store)
    assert told(await runs_of(store)) == [("12:01:00", "failed"), ("12:01:00", "queued"), ("12:02:00", "skipped")]
    (again,) = await claim(store)
    assert again.plan_time == claimed.plan_time


async def test_triggering_one_scope_leaves_the_failures_of_the_others(store: Store, clock: ManualClock) -> None:
    a, b = Scope("tenant", "a"), Scope("tenant", "b")
    await make_schedule(store, scopes=[("tenant", "a"), ("tenant", "b")], failure="skip")
    clock.advance(minutes(1))
    await plan(store)
    for claimed in await claim(store):
        await tell(store, claimed, Outcome.FAILED)
    await store.schedules.trigger("s", a, force=False)
    for claimed in await claim(store):
        await finish(store, claimed)
    clock.advance(minutes(1))
    await plan(store)
    states = {run.scope: run.state.value for run in await runs_of(store) if run.plan_time == instant(clock.micros())}
    assert states == {a: "queued", b: "skipped"}
