"""Schedules that follow the ends of another job: one decision for each end, rings refused, listeners kept."""

import asyncio
from typing import Any

import pytest

from rota.core.alerts.signals import Signal
from rota.core.calendar.triggers import every, following
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import RetryPolicy
from rota.core.limits.limits import Limit
from rota.core.runs.run import Run
from rota.core.schedules.revisions import Change
from rota.core.states import Outcome
from rota.errors import FollowingRing
from rota.store import Store
from rota.store.databases.database import Tx
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, finish, put, tell
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

EXTRACT = JobDefinition(name="extract", retry=RetryPolicy(1))
WORK = JobDefinition(name="work")


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def follow(store: Store, name: str = "s", on: str = "success", **options: Any) -> None:
    await store.save_jobs([EXTRACT])
    await make_schedule(store, name, following("extract", on=on), **options)


async def end(store: Store, outcome: Outcome = Outcome.SUCCEEDED, result: str | None = None, **options: Any) -> str:
    """End a run of the job that is followed."""
    await put(store, EXTRACT, **options)
    (held,) = await claim(store, known={"extract": 1})
    assert await tell(store, held, outcome, result=result)
    return held.run_id


async def deliver(store: Store) -> int:
    total = 0
    while (done := await store.signals.deliver(100)).signals:
        total += done.signals
    return total


async def listeners(store: Store) -> list[tuple[str, str]]:
    async def body(tx: Tx) -> Any:
        return await tx.fetch_sql("select job, what from rota_listener order by job, what")

    return [tuple(row) for row in await store.database.read(body)]


def told(runs: list[Run]) -> list[tuple[str, str | None]]:
    return [(run.state.value, run.reason) for run in sorted(runs, key=lambda run: run.id)]


async def test_an_end_gives_one_run(store: Store) -> None:
    await follow(store)
    run_id = await end(store)
    assert await deliver(store) == 1
    (run,) = await runs_of(store)
    assert (run.job, run.state, run.plan_time) == ("work", "queued", None)
    assert run.metadata["triggered_by"] == {"run_id": run_id, "job": "extract", "state": "succeeded"}
    assert await deliver(store) == 0
    assert len(await runs_of(store)) == 1
    assert (await get_schedule(store)).fired == 1
    (made, *_) = await store.ledger.events_of_run(run.id)
    assert (made.actor, made.details["after"]) == ("messenger", run_id)


@pytest.mark.parametrize(
    ("on", "wanted"),
    [
        ("success", ["succeeded"]),
        ("failure", ["failed", "timed_out"]),
        ("end", ["succeeded", "failed", "timed_out", "cancelled"]),
    ],
)
async def test_only_ends_of_the_kind_that_it_waits_for(store: Store, on: str, wanted: list[str]) -> None:
    await follow(store, on=on, overlap="allow")
    for outcome in (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT):
        await end(store, outcome)
    await store.cancel(await put(store, EXTRACT), None, None)
    await deliver(store)
    causes = [run.metadata["triggered_by"]["state"] for run in await runs_of(store)]
    assert causes == wanted


async def test_ends_queue_behind_each_other(store: Store) -> None:
    await follow(store)
    for _ in range(3):
        await end(store)
    await deliver(store)
    assert [run.state for run in await runs_of(store)] == ["queued", "scheduled", "scheduled"]
    for _ in range(3):
        (held,) = await claim(store)
        await finish(store, held)
    assert {run.state for run in await runs_of(store)} == {"succeeded"}


async def test_overlap_is_a_recorded_skip(store: Store) -> None:
    await follow(store, overlap="skip")
    await end(store)
    await end(store)
    await deliver(store)
    first, second = sorted(await runs_of(store), key=lambda run: run.id)
    assert (first.state, second.state) == ("queued", "skipped")
    assert second.reason == f"overlap: run {first.id} is not over"
    assert "triggered_by" in second.metadata


async def test_limits_decide_one_at_a_time(store: Store) -> None:
    await follow(store, job=JobDefinition(name="work", limits=(Limit(max=1, when_full="skip"),)), overlap="allow")
    for _ in range(3):
        await end(store)
    assert (await store.signals.deliver(100)).signals == 1
    assert await deliver(store) == 2
    assert sorted(run.state for run in await runs_of(store)) == ["queued", "skipped", "skipped"]


async def test_paused_and_disabled_are_recorded_skips(store: Store) -> None:
    await follow(store)
    await store.schedules.pause("s", None, None, None)
    await end(store)
    await deliver(store)
    await store.schedules.resume("s", "skip", None)
    await edit(store, "s", following("extract"), enabled=False)
    await end(store)
    await deliver(store)
    await edit(store, "s", following("extract"))
    await store.pause_job("work", None, None)
    await end(store)
    await deliver(store)
    assert told(await runs_of(store)) == [
        ("skipped", "the schedule is paused"),
        ("skipped", "the schedule is disabled"),
        ("skipped", "job 'work' is paused or cancelled"),
    ]


async def test_after_its_own_failure_it_pauses(store: Store) -> None:
    await follow(store, job=JobDefinition(name="work", retry=RetryPolicy(1)), failure="pause")
    await end(store)
    await deliver(store)
    (held,) = await claim(store)
    await tell(store, held, Outcome.FAILED)
    await end(store)
    await end(store)
    await deliver(store)
    assert [run.state for run in sorted(await runs_of(store), key=lambda run: run.id)] == [
        "failed", "skipped", "skipped",
    ]  # fmt: skip
    assert (await get_schedule(store)).state == "paused"


async def test_its_lanes_are_kept_between_messengers(store: Store, clock: ManualClock) -> None:
    await follow(store, job=JobDefinition(name="work", retry=RetryPolicy(1)), failure="backoff")
    await end(store)
    await deliver(store)
    (held,) = await claim(store)
    await tell(store, held, Outcome.FAILED)
    for _ in range(2):
        await end(store)
        await deliver(store)
    clock.advance(minutes(2))
    await end(store)
    await deliver(store)
    assert [run.state for run in sorted(await runs_of(store), key=lambda run: run.id)] == [
        "failed", "skipped", "skipped", "queued",
    ]  # fmt: skip

    async def lane_runs(tx: Tx) -> Any:
        return await tx.fetch_sql("select run_id from rota_lane_run")

    assert len(await store.database.read(lane_runs)) == 1


async def test_it_ends_after_its_last_run(store: Store) -> None:
    await follow(store, max_runs=2)
    for _ in range(4):
        await end(store)
    await deliver(store)
    assert len(await runs_of(store)) == 2
    assert (await get_schedule(store)).state == "ended"


async def test_a_delay_and_windows(store: Store, clock: ManualClock) -> None:
    await store.save_jobs([EXTRACT])
    trigger = following("extract", delay="10m")
    await make_schedule(store, "s", trigger, windows=["09:00-17:00"], overlap="allow")
    await end(store)
    await deliver(store)
    (run,) = await runs_of(store)
    assert run.state == "scheduled"
    assert run.run_at - run.created_at == minutes(10)
    clock.advance(minutes(360))
    await end(store)
    await deliver(store)
    assert told(await runs_of(store))[1] == ("skipped", "the run that it follows ended outside of its windows")


async def test_scopes(store: Store) -> None:
    await follow(store, scopes=[("a", "1"), ("a", "2")])
    await end(store, scope=("a", "2"))
    await deliver(store)
    assert [run.scope.id for run in await runs_of(store)] == ["2"]
    await end(store)
    await deliver(store)
    assert sorted(run.scope.id for run in await runs_of(store)) == ["1", "2", "2"]


async def test_an_end_of_another_scope_is_nothing_to_those_of_a_schedule(store: Store) -> None:
    await follow(store, scopes=[("a", "1"), ("a", "2")], max_runs=2)
    await follow(store, "all")
    await end(store, scope=("a", "3"), result="17")
    await deliver(store)
    assert await runs_of(store) == []
    assert [run.scope.id for run in await runs_of(store, "all")] == ["global"]
    for _ in range(2):
        await end(store, scope=("a", "1"))
    await deliver(store)
    assert [run.scope.id for run in await runs_of(store)] == ["1", "1"], "it did not count as one of its runs"


async def test_templates_keep_types_and_are_filled_once(store: Store) -> None:
    payload = {"n": "{after.result}", "told": "{after.state}: {after.result} of {schedule}", "of": "{after.run_id}"}
    await follow(store, payload=payload)
    run_id = await end(store, result='{"rows":[1,"{schedule}"]}')
    await deliver(store)
    (run,) = await runs_of(store)
    assert run.payload == {
        "n": {"rows": [1, "{schedule}"]},
        "told": 'succeeded: {"rows":[1,"{schedule}"]} of s',
        "of": run_id,
    }


async def test_listeners_come_and_go_with_it(store: Store) -> None:
    await follow(store)
    assert await listeners(store) == [("extract", "schedule")]
    await store.save_jobs([JobDefinition(name="other")])
    await edit(store, "s", following("other"))
    assert await listeners(store) == [("other", "schedule")]
    await edit(store, "s", every("1m"))
    assert await listeners(store) == []
    await end(store)
    assert await deliver(store) == 0
    await edit(store, "s", following("extract"))
    await store.schedules.delete("s", None)
    assert await listeners(store) == []


async def test_what_ended_before_it_was_made_is_none_of_its(store: Store, clock: ManualClock) -> None:
    await follow(store, "first")
    await end(store)
    clock.advance(minutes(1))
    await follow(store, "second")
    await end(store)
    await deliver(store)
    assert (len(await runs_of(store, "first")), len(await runs_of(store, "second"))) == (2, 1)


async def test_a_signal_whose_schedule_is_gone(store: Store) -> None:
    await follow(store)
    await end(store)
    await store.schedules.delete("s", None)
    assert await deliver(store) == 1
    assert await runs_of(store) == []


async def test_rings_are_refused_with_their_path(store: Store) -> None:
    await store.save_jobs([EXTRACT, JobDefinition(name="load"), WORK])
    with pytest.raises(FollowingRing, match="work → work"):
        await make_schedule(store, "self", following("work"))
    await follow(store)  # extract → work
    await make_schedule(store, "second", following("work"), job=JobDefinition(name="load"))
    with pytest.raises(FollowingRing, match="load → extract → work → load"):
        await make_schedule(store, "third", following("load"), job=EXTRACT)
    await make_schedule(store, "third", every("1h"), job=EXTRACT)
    ringed = await definition_of(store, following("load"), EXTRACT, "third")
    with pytest.raises(FollowingRing):
        await store.schedules.update("third", ringed, Change(note="edited"))
    assert (await get_schedule(store, "third")).definition.awaited is None


async def test_two_who_close_a_ring_at_once(store: Store, second: Store) -> None:
    await store.save_jobs([EXTRACT, WORK])
    one = await definition_of(store, following("extract"), WORK, "one")
    two = await definition_of(store, following("work"), EXTRACT, "two")
    answers = await asyncio.gather(
        store.schedules.create("one", one, "test"), second.schedules.create("two", two, "test"), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["FollowingRing", "Schedule"]


async def test_three_messengers_at_once(store: Store, second: Store) -> None:
    await follow(store, overlap="allow")
    wanted = {await end(store) for _ in range(30)}
    await asyncio.gather(*[one.signals.deliver(7) for one in (store, second, store) for _ in range(6)])
    await deliver(store)
    causes = [run.metadata["triggered_by"]["run_id"] for run in await runs_of(store)]
    assert len(causes) == 30
    assert set(causes) == wanted


async def test_a_crash_before_the_commit_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await follow(store)
    await end(store)

    async def crash(*_: object) -> None:
        raise RuntimeError("the power is gone")

    with monkeypatch.context() as broken:
        broken.setattr("rota.store.alerts.signals.notifications.tell", crash)
        with pytest.raises(RuntimeError):
            await store.signals.deliver(100)
    assert await runs_of(store) == []
    assert await deliver(store) == 1
    assert len(await runs_of(store)) == 1


async def test_one_that_cannot_be_read_is_in_nobodys_way(store: Store) -> None:
    await follow(store, "broken")
    await follow(store)
    sql = "update rota_schedule set revision = revision + 1, definition = '{}' where name = 'broken'"
    await store.database.transact(lambda tx: tx.fetch_sql(sql))
    await end(store)
    assert await deliver(store) == 1
    assert len(await runs_of(store)) == 1


async def test_a_signal_that_is_dropped_is_noted(store: Store) -> None:
    await store.signals.add(Signal(0, 0, "late", "job", "extract", "extract"))

    async def first(tx: Tx) -> Any:
        return (await tx.fetch("take_signals", [], limit=1))[0]

    no, at, *_ = await store.database.transact(first)
    await store.signals.drop(Signal(no, at, "late", "job", "extract", "extract"), "ValueError: no")
    (event,) = await store.events.audit({}, 10, None)
    assert (event.kind, event.subject, event.type) == ("job", "extract", "signal_dropped")
    assert not (await store.signals.look()).signals


async def test_planning_the_ledger_and_backfill_leave_it_alone(store: Store, clock: ManualClock) -> None:
    await follow(store)
    schedule = await get_schedule(store)
    assert (schedule.state, schedule.next_plan) == ("active", None)
    clock.advance(minutes(600))
    assert await plan(store) == 0
    await end(store)
    await deliver(store)
    assert (await store.ledger.verify("s", thorough=True)).findings == ()
    await store.prune(lambda _: JobDefinition(name="x").retention)
