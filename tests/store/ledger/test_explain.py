"""Explanations on both databases: each verdict about a plan time, each state of a run."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.calendar.triggers import after, cron, every, following, once
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.limits.limits import Limit
from rota.core.progress.notes import Notes, StepNote
from rota.core.progress.steps import StepState
from rota.core.states import Outcome
from rota.core.workers.worker import WorkerState
from rota.errors import Invalid, UnknownRun, UnknownSchedule
from rota.store import Store
from rota.values.instants import instant
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, claim_limited, finish, make, put, tell
from tests.support.schedules.random_history import JOB, ahead
from tests.support.schedules.schedules import MINUTE, SECOND, edit, make_schedule, minutes, noon, plan, runs_of


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def about(store: Store, clock: ManualClock, minute: int) -> Explanation:
    """Explain the plan time at that minute after twelve, whatever time it is now."""
    midday = clock.micros() // (60 * MINUTE) * 60 * MINUTE
    return await store.ledger.explain("s", midday + minute * MINUTE, LEASE_MICROS)


async def of_run(store: Store, run_id: str) -> Explanation:
    return await store.ledger.explain_run(run_id, LEASE_MICROS)


def said(found: Explanation) -> str:
    return " ".join(found.words)


async def test_what_became_of_a_plan_time(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up={"mode": "latest", "window": "5m"})
    clock.advance(minutes(1))
    await plan(store)
    (held,) = await claim(store)
    clock.advance(timedelta(seconds=2))
    await tell(store, held, Outcome.SUCCEEDED, busy=SECOND)
    clock.advance(minutes(20) - timedelta(seconds=2))
    await plan(store)
    clock.advance(minutes(1))
    await plan(store)

    ran = await about(store, clock, 1)
    assert ran.verdict == "ran"
    assert f"Run {held.run_id} is succeeded; it began 1s after its plan time." in ran.words
    assert ran.facts["runs"][0]["lateness_ms"] == 1_000
    missed = await about(store, clock, 5)
    assert missed.verdict == "missed"
    assert "older than the catch-up window" in said(missed)
    coalesced = await about(store, clock, 18)
    (_, covering, skipped_run) = await runs_of(store)
    assert coalesced.verdict == "coalesced"
    assert covering.id in said(coalesced)
    skipped = await about(store, clock, 22)
    assert skipped.verdict == "skipped"
    assert f"overlap: run {covering.id} is not over" in said(skipped)
    assert skipped.facts["runs"][0]["run_id"] == skipped_run.id


async def test_what_is_no_plan_time(store: Store, clock: ManualClock) -> None:
    await make_schedule(
        store, trigger=cron("*/10 * * * *"), windows=["12:00-12:30"], exclude=["2025-06-17"], end_at=None
    )
    between = await about(store, clock, 15)
    assert between.verdict == "not_planned"
    assert between.facts["removed_by"] is None
    assert between.words[1:] == ("The previous one is 2025-06-16T12:10:00Z.", "The next one is 2025-06-16T12:20:00Z.")
    assert "outside of the execution windows" in said(await about(store, clock, 40))
    assert "its date is excluded" in said(await about(store, clock, 24 * 60 + 10))
    assert "begins at 2025-06-16T12:00:00Z" in said(await about(store, clock, -10))


async def test_a_pause_is_told_by_whom_and_why(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    await store.schedules.pause("s", "moving", "ada", None)
    clock.advance(minutes(3))
    now = await about(store, clock, 2)
    assert now.verdict == "paused"
    assert "paused by ada since" in said(now)
    assert "moving" in said(now)
    later = await about(store, clock, 5)
    assert later.verdict == "future"
    assert "it will not run" in said(later)
    await store.schedules.resume("s", "skip", "bob")
    then = await about(store, clock, 2)
    assert then.verdict == "paused"
    assert "paused: moving by ada" in said(then)


async def test_what_will_be(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, delay="30s", jitter="10s", max_runs=3)
    clock.advance(minutes(1) + timedelta(seconds=40))
    await plan(store)
    future = await about(store, clock, 2)
    assert future.verdict == "future"
    assert "It will be planned at 2025-06-16T12:02:30Z." in future.words
    assert "it would be skipped: overlap" in said(future)
    assert "2025-06-16T12:02:3" in future.facts["eligible_at"][0]["at"]
    over = await about(store, clock, 4)
    assert over.verdict == "not_planned"
    assert "may have 3 runs" in said(over)


async def test_after_its_end_it_names_no_plan_times(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, max_runs=2, overlap="allow")
    for _ in range(4):
        clock.advance(minutes(1))
        await plan(store)
    ended = "It is not a plan time: the schedule ended at 2025-06-16T12:02:00Z, after the last of the 2 runs"
    ended += " that it may have."
    for minute in (3, 9):
        found = await about(store, clock, minute)
        assert (found.verdict, found.words) == ("not_planned", (ended,))
        assert (found.facts["max_runs"], found.facts["ended_at"]) == (2, "2025-06-16T12:02:00Z")
    await store.pause_job("work", None, "ada")
    clock.advance(minutes(2))
    assert (await about(store, clock, 5)).words == (ended,)
    await store.resume_job("work", "skip", "ada")
    for minute in (3, 5, 9):
        assert (await about(store, clock, minute)).words == (ended,)


async def test_why_a_run_of_a_plan_time_did_not_succeed(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, job=JOB, overlap="cancel_previous")
    clock.advance(minutes(1))
    await plan(store)
    (held,) = await claim(store)
    clock.advance(minutes(1))
    await plan(store)
    first, second = await runs_of(store)
    assert f"Run {first.id} is cancelling: superseded by run {second.id}" in said(await about(store, clock, 1))
    await tell(store, held, Outcome.CANCELLED)
    cancelled = await about(store, clock, 1)
    assert f"Run {first.id} is cancelled: superseded by run {second.id}; it began" in said(cancelled)
    assert cancelled.facts["runs"][0]["reason"] == f"superseded by run {second.id}"
    assert cancelled.facts["runs"][0]["error"] is None
    (held,) = await claim(store)
    await tell(store, held, Outcome.FAILED)
    failed = await about(store, clock, 2)
    assert f"Run {second.id} is failed: ValueError: no luck; it began" in said(failed)
    assert failed.facts["runs"][0]["error"] == {"type": "ValueError", "message": "no luck"}


async def test_whoever_cancelled_a_run_of_a_plan_time_is_named(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    clock.advance(minutes(1))
    await plan(store)
    (run,) = await runs_of(store)
    await store.cancel(run.id, "wrong", "ada")
    assert (await about(store, clock, 1)).words == (f"Run {run.id} is cancelled by ada: wrong.",)


async def test_a_run_that_will_be_tried_again_says_how_it_went(store: Store, clock: ManualClock) -> None:
    await make_schedule(store)
    clock.advance(minutes(1))
    await plan(store)
    (held,) = await claim(store)
    await tell(store, held, Outcome.FAILED, retry_in=MINUTE)
    resting = said(await about(store, clock, 1))
    assert f"Run {held.run_id} is scheduled; its last attempt ended with ValueError: no luck; it " in resting


async def test_the_newest_plan_time_is_the_last_that_came(store: Store, clock: ManualClock) -> None:
    async def newest(name: str = "s") -> tuple[str, object]:
        found = await store.ledger.explain(name, None, LEASE_MICROS)
        return found.verdict, found.facts["at"]

    await make_schedule(store, max_runs=2, overlap="allow")
    assert await newest() == ("future", "2025-06-16T12:01:00Z"), "none has come"
    clock.advance(minutes(1))
    assert await newest() == ("pending", "2025-06-16T12:01:00Z")
    for _ in range(4):
        await plan(store)
        clock.advance(minutes(1))
    assert await newest() == ("ran", "2025-06-16T12:02:00Z"), "it has ended"
    await store.pause_job("work", None, None)
    clock.advance(minutes(1))
    await store.resume_job("work", "skip", None)
    assert await newest() == ("ran", "2025-06-16T12:02:00Z")
    await edit(store, "s", max_runs=3)
    assert await newest() == ("ran", "2025-06-16T12:02:00Z"), "though there will be one more"
    await store.schedules.pause("s", "mine", "ada", None)
    clock.advance(minutes(2))
    assert await newest() == ("paused", "2025-06-16T12:08:00Z")


async def test_the_newest_plan_time_of_those_that_are_not_regular(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, "past", trigger=once(instant(clock.micros() - 5 * MINUTE)))
    await make_schedule(store, "follows", trigger=after("5m"))
    await make_schedule(store, "ends", trigger=following("else"))
    await plan(store)
    found = await store.ledger.explain("past", None, LEASE_MICROS)
    assert (found.verdict, found.facts["at"]) == ("ran", "2025-06-16T11:55:00Z")
    clock.advance(timedelta(seconds=1))
    await plan(store)
    clock.advance(minutes(3))
    assert (await store.ledger.explain("follows", None, LEASE_MICROS)).verdict == "ran"
    with pytest.raises(Invalid, match="schedule 'ends' has had no plan time yet"):
        await store.ledger.explain("ends", None, LEASE_MICROS)


async def test_what_is_due_and_not_planned(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, scopes="shops")
    clock.advance(minutes(1))
    assert "within a second" in said(await about(store, clock, 1))
    clock.advance(minutes(1))
    late = await about(store, clock, 1)
    assert late.verdict == "pending"
    assert "scope provider 'shops'" in said(late)
    assert "No worker is alive" in said(late)
    await store.planning.note_provider_trouble("shops", "it is on fire")
    assert "it is on fire" in said(await about(store, clock, 1))
    await plan(store, shops=(Scope("shop", "a"), Scope("shop", "b")))
    ran = await about(store, clock, 2)
    assert ran.verdict == "ran"
    assert ran.words[0] == "2 queued."
    assert "for shop/a" in ran.words[1]
    assert "for shop/b" in ran.words[2]


async def test_a_schedule_that_follows_its_runs(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=after("5m"))
    clock.advance(timedelta(seconds=1))
    await plan(store)
    assert (await store.ledger.explain("s", clock.micros(), LEASE_MICROS)).verdict == "ran"
    assert "after the end of the last one" in said(await about(store, clock, 3))


async def test_an_edit_does_not_change_what_was(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, catch_up="none")
    clock.advance(minutes(3))
    await plan(store)
    await edit(store, "s", every("5m"))
    assert (await about(store, clock, 2)).verdict == "missed"
    assert (await about(store, clock, 4)).verdict == "not_planned"
    with pytest.raises(UnknownSchedule):
        await store.ledger.explain("t", 0, LEASE_MICROS)


async def worker(store: Store, **facts: Any) -> None:
    await store.extend(msgspec.structs.replace(WORKER, **facts), [], LEASE_MICROS)


async def test_why_a_run_is_queued(store: Store) -> None:
    first = await put(store)
    second = await put(store)
    assert "No worker is alive" in said(await of_run(store, first))
    await worker(store, queues=("mail",))
    assert "The only live worker does not take runs of queue 'default'." in said(await of_run(store, first))
    await worker(store, id="worker-2", jobs=("else",))
    assert "knows job 'work'" in said(await of_run(store, first))
    await worker(store, id="worker-4", state=WorkerState.DRAINING)
    drained = await of_run(store, first)
    assert "Worker worker-4 would take it, but is draining: `rota workers resume worker-4`." in drained.words
    assert drained.facts["workers"] == []
    await worker(store, id="worker-3")
    assert said(await of_run(store, first)) == "Nothing holds it back: the next free worker takes it."
    assert said(await of_run(store, second)) == "1 run of its queue comes before it."
    await store.pause_job("work", "too loud", "ada")
    await store.pause_queue("default", None, None)
    paused = await of_run(store, second)
    assert "Its job 'work' is paused by ada" in said(paused)
    assert "Its queue 'default' is paused since" in said(paused)
    assert paused.facts["before"] == 1


async def test_why_a_run_is_scheduled(store: Store, clock: ManualClock) -> None:
    waits = await put(store, delay="10m")
    assert "It is due at 2025-06-16T12:10:00Z (in 10m)." in (await of_run(store, waits)).words
    failing = await put(store, max_attempts=3)
    (held,) = await claim(store)
    await tell(store, held, Outcome.FAILED, retry_in=MINUTE)
    resting = await of_run(store, failing)
    assert resting.verdict == "scheduled"
    assert "after attempt 1 of 3, which failed: ValueError: no luck" in said(resting)
    await make_schedule(store, overlap="queue_all")
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    first, second = await runs_of(store)
    assert said(await of_run(store, second.id)) == f"It waits for the end of run {first.id}."


async def test_a_full_limit_is_named(store: Store) -> None:
    job = JobDefinition(name="work", limits=(Limit(max=1),))
    runs = [(await store.enqueue([make(job)]))[0].id for _ in range(2)]
    await claim_limited(store)
    assert "Limit of job 'work' is full: 1 of 1 slots are in use." in (await of_run(store, runs[1])).words


async def test_why_a_run_goes_on_or_has_ended(store: Store, clock: ManualClock) -> None:
    runs = [await put(store, max_attempts=1) for _ in range(4)]
    held = {one.run_id: one for one in await claim(store, 4)}
    running = await of_run(store, runs[0])
    assert running.verdict == "running"
    assert "attempt 1 of 1" in said(running)
    clock.advance(minutes(1))
    assert "without a heartbeat" in said(await of_run(store, runs[0]))
    await store.cancel(runs[1], "wrong", "ada")
    cancelling = await of_run(store, runs[1])
    assert "It was asked to stop by ada: wrong." in cancelling.words
    await finish(store, held[runs[0]])
    await tell(store, held[runs[2]], Outcome.FAILED)
    await tell(store, held[runs[3]], Outcome.TIMED_OUT)
    assert "It succeeded at" in said(await of_run(store, runs[0]))
    assert "That was the last attempt." in (await of_run(store, runs[2])).words
    assert "timed out at" in said(await of_run(store, runs[3]))
    waiting = await put(store)
    await store.cancel(waiting, None, "ada")
    cancelled = said(await of_run(store, waiting))
    assert "cancelled by ada" in cancelled
    assert "never began" in cancelled
    with pytest.raises(UnknownRun):
        await of_run(store, "00000000-0000-7000-8000-000000000000")


async def test_a_step_that_is_not_to_be_cancelled_finishes_before_the_grace_begins(
    store: Store,
) -> None:
    run = await put(store)
    (held,) = await claim(store)
    await store.notes.shield(held.run_id, held.fence, 1)
    await store.cancel(run, None, "ada")
    shielded = await of_run(store, run)
    assert "that finishes first, then its grace period begins" in said(shielded)
    assert "it ends at" not in said(shielded)
    assert shielded.facts["shielded"] is True
    done = StepNote(run, held.fence, 1, "one", 1, StepState.SUCCEEDED)
    await store.notes.unshield(Notes(steps=(done,)), LEASE_MICROS, 1)
    assert "If it does not stop, it is ended at" in said(await of_run(store, run))


async def test_a_pruned_plan_time_is_known_as_such(store: Store, clock: ManualClock) -> None:
    later = ahead()
    clock.advance(timedelta(microseconds=later.micros() - clock.micros()))
    start = clock.micros()
    await make_schedule(store, job=JOB)
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
        for held in await claim(store):
            await finish(store, held)
    clock.advance(minutes(1))
    await store.prune(lambda _job: Retention(keep=0, keep_for=timedelta(0)))
    found = await store.ledger.explain("s", start + MINUTE, LEASE_MICROS)
    assert found.verdict == "pruned"
    assert found.facts["count"] == 2


async def test_a_plan_time_of_many_scopes_is_one_line_and_then_those_that_did_not_succeed(
    store: Store, clock: ManualClock
) -> None:
    """Did payroll run for all forty tenants?"""
    await make_schedule(store, scopes=[("tenant", f"{number:02}") for number in range(40)])
    clock.advance(minutes(1))
    await plan(store)
    held = sorted(await claim(store), key=lambda claim: claim.scope_id)
    for one in held[:37]:
        await tell(store, one, Outcome.SUCCEEDED)
    for one in held[37:39]:
        await tell(store, one, Outcome.FAILED)
    await store.cancel(held[39].run_id, "enough", "ann")
    await tell(store, held[39], Outcome.CANCELLED)
    ran = await about(store, clock, 1)
    assert (ran.verdict, ran.words[0]) == ("ran", "37 succeeded, 2 failed, 1 cancelled.")
    assert ran.facts["counts"] == {"succeeded": 37, "failed": 2, "cancelled": 1}
    assert [facts["scope"]["id"] for facts in ran.facts["runs"]] == ["37", "38", "39"]
    assert len(ran.words) == 4
    assert "for tenant/39 is cancelled by ann: enough" in ran.words[3]
