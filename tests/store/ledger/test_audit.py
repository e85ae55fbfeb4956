"""The trail of a run: every change of its state, in order, with actor, fence and time; and nothing twice."""

from datetime import timedelta

import msgspec
import pytest

from rota.core.calendar.triggers import every
from rota.core.jobs.job import CancelPolicy, JobDefinition, Retention
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.core.states import Outcome, RunState
from rota.errors import UnknownRun
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.actor import POLICY
from rota.values.instants import instant
from tests.store.runs.test_waits import put_after
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.audit_trails import repeat_everything, trail, words
from tests.support.runs.runs import (
    LEASE,
    WORK,
    WORKER,
    claim,
    claim_limited,
    finish,
    make,
    put,
    put_and_claim,
    state_of,
    tell,
)
from tests.support.schedules.schedules import make_schedule, plan, runs_of

NOTHING_KEPT = Retention(keep=0, keep_for=timedelta(0))


async def written(store: Store) -> int:
    async def body(tx: Tx) -> int:
        ((count,),) = await tx.fetch_sql("select count(*) from rota_event")
        return int(count)

    return await store.database.read(body)


async def claim_again(store: Store) -> None:
    assert await claim(store)


async def test_an_ordinary_life_costs_no_row(store: Store, clock: ManualClock) -> None:
    run_id = await put(store, delay="10s")
    assert words(await trail(store, run_id)) == ["created → scheduled"]
    clock.advance(10 * SECOND)
    assert words(await trail(store, run_id)) == ["created → scheduled"]  # it is due, but nobody has looked yet
    await store.promote(10)
    assert words(await trail(store, run_id)) == ["created → scheduled", "due → queued"]
    clock.advance(SECOND)
    (held,) = await claim(store)
    assert words(await trail(store, run_id))[2:] == ["claimed → running"]
    clock.advance(SECOND)
    await finish(store, held)
    events = await trail(store, run_id)
    assert words(events)[3:] == ["succeeded → succeeded"]
    assert [event.actor for event in events] == ["client", "promoter", WORKER.id, WORKER.id]
    assert [event.fence for event in events] == [0, 0, 1, 1]
    run = await store.get_run(run_id)
    assert [event.at for event in events] == [
        run.created_at, run.run_at, instant(clock.micros()) - SECOND, run.finished_at,
    ]  # fmt: skip
    assert await written(store) == 0


async def test_retry_snooze_hand_back_loss_and_expiry(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store, max_attempts=2)
    assert await tell(store, held, Outcome.FAILED, retry_in=5_000_000)
    clock.advance(6 * SECOND)
    await store.promote(10)
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.SNOOZED, retry_in=60_000_000)
    clock.advance(MINUTE)
    await store.promote(10)
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.HANDED_BACK)
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.TIMED_OUT, retry_in=0)
    events = await trail(store, held.run_id)
    assert words(events) == [
        "created → queued", "claimed → running", "failed → scheduled", "due → queued", "claimed → running",
        "snoozed → scheduled", "due → queued", "claimed → running", "handed_back → queued", "claimed → running",
        "timed_out → queued",
    ]  # fmt: skip
    failed, due = events[2:4]
    assert failed.details == {
        "attempt": 1,
        "error": {"type": "ValueError", "message": "no luck"},
        "due_at": due.at,
    }
    assert due.at == failed.at + 5 * SECOND
    await claim_again(store)
    clock.advance(LEASE + SECOND)
    await store.reap(10)
    expired = (await trail(store, held.run_id))[-1]
    assert (expired.type, expired.to_state, expired.actor) == ("lost", RunState.EXPIRED, "reaper")
    assert expired.details["error"]["code"] == "stale_timeout"
    (note,) = await store.events.audit({}, 10, None)
    assert (note.kind, note.type) == ("worker", "lost_runs"), "what the worker held, and nothing else"


async def test_a_lost_run_is_queued_again(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    clock.advance(LEASE + SECOND)
    await store.reap(10)
    await claim_again(store)
    events = await trail(store, held.run_id)
    assert words(events)[2:] == ["lost → queued", "claimed → running"]
    assert [event.fence for event in events[1:]] == [1, 1, 3]


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CANCELLED])
async def test_the_last_attempt_ends_the_run(store: Store, outcome: Outcome) -> None:
    held = await put_and_claim(store)
    assert await tell(store, held, outcome)
    assert words(await trail(store, held.run_id))[2:] == [f"{outcome.value} → {outcome.value}"]


@pytest.mark.parametrize("delay", ["0s", "1m"])
async def test_cancelled_before_it_was_claimed(store: Store, delay: str) -> None:
    run_id = await put(store, delay=delay)
    was = await state_of(store, run_id)
    for _ in range(2):
        await store.cancel(run_id, "wrong url", "ann")
    *_, end = events = await trail(store, run_id)
    assert words(events) == [f"created → {was.value}", "cancelled → cancelled"]
    assert (end.from_state, end.actor, end.fence, end.details) == (was, "ann", 1, {"reason": "wrong url"})


async def test_cancelled_while_it_is_due_again(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=1_000_000)
    clock.advance(2 * SECOND)
    await store.promote(10)
    await store.cancel(held.run_id, None, "ann")
    assert words(await trail(store, held.run_id))[2:] == ["failed → scheduled", "due → queued", "cancelled → cancelled"]


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        (Outcome.SUCCEEDED, RunState.SUCCEEDED),
        (Outcome.CANCELLED, RunState.CANCELLED),
        (Outcome.FAILED, RunState.CANCELLED),
        (Outcome.HANDED_BACK, RunState.CANCELLED),
    ],
)
async def test_cancelled_while_it_runs(store: Store, clock: ManualClock, outcome: Outcome, end: RunState) -> None:
    held = await put_and_claim(store)
    clock.advance(SECOND)
    await store.cancel(held.run_id, "too late", "ann")
    clock.advance(SECOND)
    await store.cancel(held.run_id, "much too late", "bob")
    await store.cancel(held.run_id, "superseded", f"{POLICY}overlap")
    assert words(await trail(store, held.run_id))[2:] == ["cancel_asked → cancelling"]
    assert await tell(store, held, outcome)
    *_, asked, ended = await trail(store, held.run_id)
    assert (asked.type, asked.actor, asked.fence) == ("cancel_asked", "ann", 1)
    assert asked.details == {"reason": "too late"}
    assert (ended.type, ended.from_state, ended.to_state) == (outcome.value, RunState.CANCELLING, end)
    assert await written(store) == 1


async def test_a_cancel_whose_grace_is_over(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", cancel=CancelPolicy(grace=5 * SECOND))
    await store.save_jobs([job])
    held = await put_and_claim(store, job)
    await store.cancel(held.run_id, None, "ann")
    clock.advance(6 * SECOND)
    await store.reap(10)
    assert words(await trail(store, held.run_id))[2:] == ["cancel_asked → cancelling", "lost → cancelled"]


async def test_what_a_limit_lets_give_way_or_does_not_let_in(store: Store) -> None:
    oldest = JobDefinition(name="work", limits=(Limit(max=1, when_full="cancel_oldest"),))
    first, second = await put(store, oldest), await put(store, oldest)
    *_, end = await trail(store, first)
    assert (end.type, end.to_state, end.actor) == ("superseded", RunState.SKIPPED, f"{POLICY}limit")
    assert (await claim_limited(store))[0].run_id == second
    await put(store, oldest)
    assert words(await trail(store, second))[-1] == "cancel_asked → cancelling"
    skipping = JobDefinition(name="other", limits=(Limit(max=1, when_full="skip"),))
    await put(store, skipping)
    (skipped,) = await trail(store, await put(store, skipping))
    assert (skipped.type, skipped.from_state, skipped.to_state) == ("skipped", None, RunState.SKIPPED)
    assert skipped.actor == f"{POLICY}limit"
    assert skipped.details["reason"]


async def test_a_schedule_that_supersedes_and_waits(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, trigger=every("1m"), overlap="cancel_previous")
    clock.advance(MINUTE)
    await plan(store)
    (held,) = await claim(store)
    for _ in range(2):
        clock.advance(MINUTE)
        await plan(store)
    first, second, third = await runs_of(store)
    assert words(await trail(store, first.id))[-1] == "cancel_asked → cancelling"
    assert words(await trail(store, second.id)) == ["created → scheduled", "superseded → skipped"]
    created, *_ = await trail(store, third.id)
    assert (created.actor, created.to_state) == ("planner", RunState.SCHEDULED)
    assert created.details == {"schedule": "s", "plan_time": third.plan_time}
    clock.advance(SECOND)
    assert await tell(store, held, Outcome.CANCELLED)
    *_, released = await trail(store, third.id)
    assert (released.type, released.at) == ("released", instant(clock.micros()))
    assert released.details == {"after": first.id}
    assert await store.events.audit({"subject": third.id}, 10, None) == []  # nobody's act


async def test_a_run_released_before_its_time_is_due_at_its_time(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    early, late = await put_after(store, held.run_id, delay="1m"), await put_after(store, held.run_id, delay="1s")
    clock.advance(10 * SECOND)
    await finish(store, held)
    assert words(await trail(store, early)) == ["created → scheduled"]
    assert words(await trail(store, late)) == ["created → scheduled", "released → queued"]
    clock.advance(MINUTE)
    await store.promote(10)
    created, due = await trail(store, early)
    assert (due.type, due.at) == ("due", created.at + MINUTE)


async def test_a_run_that_was_due_when_it_was_made_is_released_though_the_clock_was_set_back(
    store: Store, clock: ManualClock
) -> None:
    held = await put_and_claim(store)
    waiting = await put_after(store, held.run_id)
    clock.advance(-MINUTE)
    await finish(store, held)
    assert words(await store.ledger.events_of_run(waiting)) == ["created → scheduled", "released → queued"]
    assert (await store.get_run(waiting)).state is RunState.QUEUED


async def test_many_are_released_by_one_statement(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    held = await put_and_claim(store)
    waiting = [await put_after(store, held.run_id) for _ in range(20)]
    repeat_everything(store, monkeypatch)
    await finish(store, held)
    assert await written(store) == 20
    assert words(await trail(store, waiting[7])) == ["created → scheduled", "released → queued"]


async def test_a_run_that_is_replaced_while_it_waits(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", unique=Unique(on_conflict="replace"))
    run_id = await put(store, job, delay="1m")
    clock.advance(SECOND)
    assert await put(store, job) == run_id
    events = await trail(store, run_id)
    assert words(events) == ["created → scheduled", "replaced → queued"]
    assert events[1].at == events[0].at + SECOND
    clock.advance(SECOND)
    assert await put(store, job, delay="10s") == run_id
    assert await put(store, job, delay="20s") == run_id
    clock.advance(20 * SECOND)
    await store.promote(10)
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=60_000_000)
    assert await put(store, job) == run_id
    assert words(await trail(store, run_id)) == [
        "created → scheduled", "replaced → queued", "replaced → scheduled", "replaced", "due → queued",
        "claimed → running", "failed → scheduled",
    ]  # fmt: skip


async def test_nothing_that_is_repeated_is_told_twice(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat_everything(store, monkeypatch)
    await store.save_jobs([WORK])
    job = JobDefinition(name="work", unique=Unique(on_conflict="replace"))
    replaced = await put(store, job, delay="1m")
    assert await put(store, job) == replaced
    (held,) = await claim(store)
    await store.cancel(replaced, "why", "ann")
    await finish(store, held)
    assert words(await trail(store, replaced)) == [
        "created → scheduled", "replaced → queued", "claimed → running", "cancel_asked → cancelling",
        "succeeded → succeeded",
    ]  # fmt: skip
    unclaimed = await put(store)
    await store.cancel(unclaimed, "why", "ann")
    assert words(await trail(store, unclaimed)) == ["created → queued", "cancelled → cancelled"]
    again = msgspec.structs.replace(make(WORK), retry_of=unclaimed, origin_id=unclaimed, actor="bob")
    await store.enqueue([again])
    assert (await trail(store, again.id))[0].actor == "bob"
    assert await written(store) == 4


async def test_events_of_a_run_go_with_it(store: Store, clock: ManualClock) -> None:
    clock.advance(timedelta(days=20_000))
    gone, stays = await put(store), await put(store)
    await store.cancel(gone, None, "ann")
    await store.pause_queue("default", None, "ann")
    assert await written(store) == 2
    clock.advance(SECOND)
    assert await store.prune(lambda _job: NOTHING_KEPT) == 1
    with pytest.raises(UnknownRun):
        await store.ledger.events_of_run(gone)
    assert [event.kind for event in await store.events.audit({}, 10, None)] == ["queue"]
    await trail(store, stays)
    clock.advance(timedelta(days=399))
    await store.prune(lambda _job: NOTHING_KEPT)
    assert await written(store) == 1
    clock.advance(timedelta(days=2))
    await store.prune(lambda _job: NOTHING_KEPT)
    assert await written(store) == 0
