"""Runs that make way: their slots and keys pass on to the run that comes instead, or nobody makes way at all."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.unique import Unique
from rota.core.ledger.backfill import BackfillOrder
from rota.core.limits.limits import Limit, is_line
from rota.core.limits.quotas import quota_of
from rota.core.runs.claim import Claim
from rota.core.runs.outcome import Wait
from rota.core.runs.run import NewRun
from rota.core.states import Outcome, RunState
from rota.errors import NotTriggered
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, finish, make, outcomes_of, put, tell
from tests.support.schedules.ledger_oracle import rows
from tests.support.schedules.schedules import get_schedule, make_schedule, minutes, noon, plan, runs_of, told

BACKOFF = 600_000_000

LIMITS: dict[str, tuple[JobDefinition, dict[str, Any]]] = {
    "schedule-skip": (JobDefinition(name="work"), {"max_concurrency": 1, "when_full": "skip"}),
    "schedule-reject": (JobDefinition(name="work"), {"max_concurrency": 1, "when_full": "reject"}),
    "schedule-none-waits": (JobDefinition(name="work"), {"max_concurrency": 1, "max_queued": 0}),
    "schedule-oldest": (JobDefinition(name="work"), {"max_concurrency": 1, "when_full": "cancel_oldest"}),
    "job-skip": (JobDefinition(name="work", limits=(Limit(max=1, when_full="skip"),)), {}),
    "key-reject": (JobDefinition(name="work", limits=(Limit(max=1, by=("scope",), when_full="reject"),)), {}),
    "unique": (JobDefinition(name="work", unique=Unique()), {}),
    "unique-reject": (JobDefinition(name="work", unique=Unique(on_conflict="reject")), {}),
    "unique-replace": (JobDefinition(name="work", unique=Unique(on_conflict="replace")), {}),
    "unique-period": (JobDefinition(name="work", unique=Unique(period=timedelta(hours=1))), {}),
    "both": (
        JobDefinition(name="work", unique=Unique(), limits=(Limit(max=1, when_full="skip"),)),
        {"max_concurrency": 1, "when_full": "skip"},
    ),
}


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def claimed(store: Store, job: str = "work") -> Claim:
    (held,) = [*await claim(store, known={job: 1}), *await claim_limited(store, known={job: 1})]
    return held


async def waits(_store: Store, _job: str) -> None:
    """Nobody has it."""


async def backs_off(store: Store, job: str) -> None:
    assert await tell(store, await claimed(store, job), Outcome.FAILED, retry_in=BACKOFF)


async def was_handed_back(store: Store, job: str) -> None:
    assert await tell(store, await claimed(store, job), Outcome.HANDED_BACK)


async def runs(store: Store, job: str) -> None:
    await claimed(store, job)


async def is_stopping(store: Store, job: str) -> None:
    await store.cancel((await claimed(store, job)).run_id, "enough", "somebody")


async def waits_outside(store: Store, job: str) -> None:
    held = await claimed(store, job)
    assert await tell(store, held, Outcome.SNOOZED, wait=Wait(timeout=BACKOFF))


Before = Callable[[Store, str], Awaitable[None]]
STATES: dict[Before, str] = {
    waits: "skipped",
    backs_off: "cancelled",
    was_handed_back: "cancelled",
    runs: "cancelling",
    is_stopping: "cancelling",
    waits_outside: "cancelling",
}


@pytest.mark.parametrize("before", STATES, ids=lambda before: before.__name__)
async def test_the_run_before_makes_way(store: Store, clock: ManualClock, before: Before) -> None:
    for name, (shape, options) in LIMITS.items():
        job = msgspec.structs.replace(shape, name=name)
        await make_schedule(store, name, job=job, overlap="cancel_previous", **options)
        clock.advance(minutes(1))
        await plan(store)
        await before(store, name)
        for _ in range(2):  # the one that waits behind it makes way for the next one, too
            clock.advance(minutes(1))
            await plan(store)
        first, second, third = await runs_of(store, name)
        held = STATES[before] == "cancelling"
        assert [run.state for run in (first, second)] == [STATES[before], "skipped"], name
        assert third.state is (RunState.SCHEDULED if held else RunState.QUEUED), name
        if held:
            known = {name: 1}
            assert not [*await claim(store, known=known), *await claim_limited(store, known=known)]  # exact at claim
            clock.advance(timedelta(minutes=1, seconds=-1))
            await store.reap(10)  # its grace is over
        assert (await claimed(store, name)).run_id == third.id, name
        assert (await store.get_run(first.id)).state is RunState(STATES[before].replace("cancelling", "cancelled"))
        await store.schedules.delete(name, None)


async def test_nobody_makes_way_for_a_run_that_a_limit_does_not_let_be(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", limits=(Limit(max=2, when_full="skip"),))
    await make_schedule(store, job=job, overlap="cancel_previous", scopes=[("tenant", "a"), ("tenant", "b")])
    clock.advance(minutes(1))
    await plan(store)
    held = await claim_limited(store)
    assert len(held) == 2
    await finish(store, next(one for one in held if one.scope_id == "b"))
    await put(store, job)  # the place of the other scope is taken
    clock.advance(minutes(1))
    await plan(store)
    states = {run.scope.id: run.state.value for run in await runs_of(store) if run.plan_time == _at(clock)}
    assert states == {"a": "scheduled", "b": "skipped"}
    assert [state for _, state in told(await runs_of(store))][:2] == ["cancelling", "succeeded"]


def _at(clock: ManualClock) -> datetime:
    return instant(clock.micros())


async def test_nobody_makes_way_for_a_run_that_a_key_does_not_let_be(store: Store, clock: ManualClock) -> None:
    """The schedule's own run holds another key than the one to come: its payload has the plan time in it."""
    job = JobDefinition(name="work", unique=Unique(("at",)), limits=(Limit(max=1, when_full="cancel_oldest"),))
    await make_schedule(store, job=job, overlap="cancel_previous", payload={"at": "{plan_time}"})
    clock.advance(minutes(1))
    await plan(store)
    held = await claimed(store)
    clock.advance(minutes(1))
    free = JobDefinition(name="work", unique=Unique(("at",)))
    at = _at(clock).isoformat().replace("+00:00", "Z")
    holder = await put(store, free, payload={"at": at}, delay="1h")
    await plan(store)
    first, second = await runs_of(store)
    assert (first.state, second.state) == (RunState.RUNNING, RunState.SKIPPED)
    assert second.reason == f"unique: run {holder} does this work"
    await finish(store, held)


async def test_what_is_done_once_is_not_stopped_to_be_begun_again(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", repeatable=False)
    await make_schedule(store, job=job, overlap="cancel_previous", max_runs=1)
    clock.advance(minutes(1))
    await plan(store)
    (first,) = await store.schedules.trigger("s", None, force=False)  # it was not begun: the new one is it
    held = await claimed(store)
    assert held.run_id == first.id
    with pytest.raises(NotTriggered, match="repeatable"):
        await store.schedules.trigger("s", None, force=False)
    assert (await store.get_run(held.run_id)).state is RunState.RUNNING
    await finish(store, held)


async def test_whoever_triggers_by_hand_displaces_the_run_before(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", unique=Unique())
    await make_schedule(store, job=job, overlap="cancel_previous", max_concurrency=1, when_full="reject")
    clock.advance(minutes(1))
    await plan(store)
    held = await claimed(store)
    (by_hand,) = await store.schedules.trigger("s", None, force=False)
    assert (await store.get_run(held.run_id)).state is RunState.CANCELLING
    assert (await store.get_run(by_hand.id)).state is RunState.SCHEDULED
    await tell(store, held, Outcome.CANCELLED)
    assert (await claimed(store)).run_id == by_hand.id


async def test_each_scope_has_the_place_of_its_own_run(store: Store, clock: ManualClock) -> None:
    scopes = [("tenant", name) for name in "abc"]
    await make_schedule(store, scopes=scopes, overlap="cancel_previous", max_concurrency=2, when_full="skip")
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    states = [(run.scope.id, run.state.value) for run in await runs_of(store)]
    assert states[:6] == [(name, "skipped") for name in "abc"] * 2
    assert states[6:] == [("a", "queued"), ("b", "queued"), ("c", "skipped")]


async def test_the_oldest_of_several_scopes_gives_way_with_those_it_displaced(store: Store, clock: ManualClock) -> None:
    scopes = [("tenant", name) for name in "ab"]
    await make_schedule(store, scopes=scopes, overlap="cancel_previous", max_concurrency=1, when_full="cancel_oldest")
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    assert [run.state.value for run in await runs_of(store)] == ["skipped", "skipped", "skipped", "queued"]


async def test_parallel_ignores_the_schedules_own_limit(store: Store, clock: ManualClock) -> None:
    parallel = {"mode": "parallel", "max_overlap": 3}
    await make_schedule(store, overlap=parallel, max_concurrency=1, when_full="skip")
    for _ in range(4):
        clock.advance(minutes(1))
        await plan(store)
    assert [state for _, state in told(await runs_of(store))] == ["queued", "queued", "queued", "skipped"]
    assert len([*await claim(store), *await claim_limited(store)]) == 3


async def test_parallel_does_not_ignore_a_rate(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", limits=(Limit(max=2, per=timedelta(hours=1)), Limit(max=1)))
    await make_schedule(store, job=job, overlap="parallel", rate=(3, "1h"))
    for _ in range(3):
        clock.advance(minutes(1))
        await plan(store)
    assert len(await claim_limited(store)) == 2
    assert not await claim(store)


async def test_a_run_that_gives_way_has_begun_or_not(store: Store) -> None:
    job = JobDefinition(name="work", limits=(Limit(max=1, when_full="cancel_oldest"),))
    first = await put(store, job)
    (held,) = await claim_limited(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=BACKOFF)
    second = await put(store, job)
    third = await put(store, job)
    begun, never = await store.get_run(first), await store.get_run(second)
    assert (begun.state, begun.reason, begun.attempt) == (RunState.CANCELLED, f"superseded by run {second}", 1)
    assert (never.state, never.reason, never.attempt) == (RunState.SKIPPED, f"superseded by run {third}", 0)
    assert await outcomes_of(store, first) == [Outcome.FAILED]


async def test_a_run_that_its_schedule_retries_is_skipped_without_an_attempt(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="cancel_previous", failure="retry")
    clock.advance(minutes(1))
    await plan(store)
    await tell(store, await claimed(store), Outcome.FAILED)
    for _ in range(2):
        clock.advance(minutes(1))
        await plan(store)
    _, second, third = await runs_of(store)
    assert (second.state, second.attempt) == (RunState.SKIPPED, 0)
    assert (await claimed(store)).attempt == 2
    assert third.max_attempts == 2


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT])
async def test_a_job_that_always_fails_pauses_though_each_run_makes_way(
    store: Store, clock: ManualClock, outcome: Outcome
) -> None:
    await make_schedule(store, overlap="cancel_previous", failure="pause")
    for _ in range(5):
        clock.advance(minutes(1))
        await plan(store)
        for held in await claim(store):
            assert await tell(store, held, outcome, retry_in=BACKOFF)
    assert [state for _, state in told(await runs_of(store))] == ["cancelled", "scheduled", "skipped"]
    assert (await get_schedule(store)).paused_at is not None


async def test_a_hand_back_before_it_makes_way_is_no_failure(store: Store, clock: ManualClock) -> None:
    await make_schedule(store, overlap="cancel_previous", failure="pause")
    for _ in range(4):
        clock.advance(minutes(1))
        await plan(store)
        for held in await claim(store):
            assert await tell(store, held, Outcome.HANDED_BACK)
    assert [state for _, state in told(await runs_of(store))] == ["cancelled"] * 3 + ["queued"]


async def test_a_run_that_has_begun_is_not_replaced(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", unique=Unique(("a",), on_conflict="replace"))
    first = await put(store, job, payload={"a": 1, "b": 1}, max_attempts=3)
    (held,) = await claim(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=1_000_000)
    (answer,) = await store.enqueue([_replacing(job)])
    assert (answer.id, answer.created) == (first, False)
    run = await store.get_run(first)
    assert (run.payload, run.max_attempts, run.state) == ({"a": 1, "b": 1}, 3, RunState.SCHEDULED)
    clock.advance(timedelta(seconds=1))
    await store.promote(10)
    assert (await claimed(store)).attempt == 2


def _replacing(job: JobDefinition) -> NewRun:
    return make(job, payload={"a": 1, "b": 2}, max_attempts=1)


async def test_what_replaces_a_retry_by_the_schedule_begins_anew(store: Store, clock: ManualClock) -> None:
    job = JobDefinition(name="work", unique=Unique(on_conflict="replace"))
    await make_schedule(store, job=job, failure="retry")
    clock.advance(minutes(1))
    await plan(store)
    await tell(store, await claimed(store), Outcome.FAILED)
    clock.advance(minutes(1))
    await plan(store)
    await put(store, job, max_attempts=1)
    held = await claimed(store)
    assert (held.attempt, held.max_attempts) == (1, 1)


@pytest.mark.parametrize("backfilled", [False, True])
async def test_what_is_replaced_comes_under_the_limits_of_what_replaces_it(
    store: Store, clock: ManualClock, backfilled: bool
) -> None:
    """Of a key in the payload of the new run and its scope, of its schedule, and of the quota of its scope."""
    tenant = ("tenant", "a")
    await store.quotas.update(*tenant, quota_of(max_concurrency=9), "ann")
    job = JobDefinition(
        name="work",
        unique=Unique(("page",), on_conflict="replace"),
        limits=(Limit(max=1, by=("scope", "site")), Limit(max=5)),
    )
    options: dict[str, Any] = {"scopes": [tenant], "max_concurrency": 3, "catch_up": "none", "overlap": "allow"}
    schedule = await make_schedule(store, job=job, payload={"page": 1, "site": "x"}, **options)
    waiting = await put(store, job, payload={"page": 1, "site": "y"}, scope=tenant)
    other = await put(store, job, payload={"page": 2, "site": "x"}, scope=tenant)
    clock.advance(minutes(1))
    if backfilled:
        await store.schedules.pause("s", None, None, None)
        now = clock.micros()
        done = await store.ledger.backfill("s", BackfillOrder(now - 60_000_000, now))
        assert done.count == 0
    else:
        await plan(store)
    assert (await store.get_run(waiting)).payload == {"page": 1, "site": "x"}
    under = await _gates(store)
    narrow, *wide = [key for key in under[waiting] if not key.startswith("backfill:")]
    assert [narrow] == [key for key in under[other] if key.startswith("key:")]
    assert wide == [f"schedule:{schedule.id}", "job:work", "quota:tenant/a"]
    assert len(await claim_limited(store)) == 1


async def _gates(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for run_id, key in await rows(store, "select run_id, key from rota_gate order by run_id, place"):
        if is_line(key):
            continue
        found.setdefault(str(run_id), []).append(key)
    return found
