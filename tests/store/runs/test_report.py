"""Reports: each outcome becomes the state that core decides, under the fence that earned it, exactly once."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.runs.outcome import Report
from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, claim, outcomes_of, put, put_and_claim, report_of, state_of, tell

FRAGILE = JobDefinition(name="work", on_lost="fail")

# outcome, facts of the report, → state, attempts used, fence
ENDINGS = [
    (Outcome.SUCCEEDED, {"result": '{"n":1}'}, RunState.SUCCEEDED, 1, 1),
    (Outcome.FAILED, {}, RunState.FAILED, 1, 1),
    (Outcome.FAILED, {"retry_in": 0}, RunState.QUEUED, 1, 1),
    (Outcome.FAILED, {"retry_in": 60_000_000}, RunState.SCHEDULED, 1, 1),
    (Outcome.TIMED_OUT, {}, RunState.TIMED_OUT, 1, 1),
    (Outcome.TIMED_OUT, {"retry_in": 1}, RunState.SCHEDULED, 1, 1),
    (Outcome.CANCELLED, {}, RunState.CANCELLED, 1, 1),
    (Outcome.SNOOZED, {"retry_in": 5_000_000}, RunState.SCHEDULED, 0, 1),
    (Outcome.HANDED_BACK, {"began": False}, RunState.QUEUED, 0, 2),
    (Outcome.HANDED_BACK, {}, RunState.QUEUED, 0, 2),
]


@pytest.mark.parametrize(("outcome", "facts", "state", "attempt", "fence"), ENDINGS)
async def test_an_outcome_becomes_a_state(
    store: Store, outcome: Outcome, facts: dict[str, object], state: RunState, attempt: int, fence: int
) -> None:
    held = await put_and_claim(store)
    assert await tell(store, held, outcome, **facts)
    run = await store.get_run(held.run_id)
    assert (run.state, run.attempt, run.fence) == (state, attempt, fence)
    (recorded,) = await store.attempts(held.run_id)
    assert (recorded.outcome, recorded.no, recorded.fence) == (outcome, 1, 1)
    assert await store.leases_of(held.run_id) == []
    assert run.state.is_final == (run.finished_at is not None)


WHILE_CANCELLING = [
    (Outcome.SUCCEEDED, RunState.SUCCEEDED, 1),
    (Outcome.FAILED, RunState.CANCELLED, 1),
    (Outcome.TIMED_OUT, RunState.CANCELLED, 1),
    (Outcome.CANCELLED, RunState.CANCELLED, 1),
    (Outcome.SNOOZED, RunState.CANCELLED, 1),
    (Outcome.HANDED_BACK, RunState.CANCELLED, 2),
]


@pytest.mark.parametrize(("outcome", "state", "fence"), WHILE_CANCELLING)
async def test_while_cancelling_only_success_is_not_cancelled(
    store: Store, outcome: Outcome, state: RunState, fence: int
) -> None:
    held = await put_and_claim(store)
    await store.cancel(held.run_id, "enough", "someone")
    assert await tell(store, held, outcome, retry_in=0)
    run = await store.get_run(held.run_id)
    assert (run.state, run.fence, run.reason) == (state, fence, "enough")


async def test_a_fragile_run_that_began_is_not_given_back(store: Store) -> None:
    began, not_begun = await put_and_claim(store, FRAGILE), await put_and_claim(store, FRAGILE)
    assert await tell(store, began, Outcome.HANDED_BACK)
    assert await tell(store, not_begun, Outcome.HANDED_BACK, began=False)
    assert await state_of(store, began.run_id) is RunState.EXPIRED
    assert await state_of(store, not_begun.run_id) is RunState.QUEUED


async def test_what_an_attempt_leaves_behind(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    claimed_at = clock.micros()
    clock.advance(10 * SECOND)
    measures = '{"cpu_time_ms":12,"memory_peak_mb":34,"counters":{"pages":2.5}}'
    assert await tell(store, held, Outcome.SUCCEEDED, busy=4_000_000, result="[1]", measures=measures)
    run = await store.get_run(held.run_id)
    now = instant(clock.micros())
    assert (run.result, run.worker_id, run.error) == ([1], "worker-1", None)
    assert (run.started_at, run.finished_at) == (now - timedelta(seconds=4), now)
    (attempt,) = await store.attempts(held.run_id)
    assert (attempt.claimed_at, attempt.started_at, attempt.ended_at) == (instant(claimed_at), run.started_at, now)
    assert (attempt.cpu_time_ms, attempt.memory_peak_mb, attempt.counters) == (12, 34, {"pages": 2.5})
    assert attempt.lease_until is None


async def test_a_failure_keeps_its_error(store: Store) -> None:
    held = await put_and_claim(store)
    assert await tell(store, held, Outcome.FAILED, result="1")
    run = await store.get_run(held.run_id)
    assert run.error is not None
    assert (run.error.type, run.error.message, run.result) == ("ValueError", "no luck", None)
    (attempt,) = await store.attempts(held.run_id)
    assert attempt.error == run.error


async def test_backoff_is_a_lower_bound(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    assert await tell(store, held, Outcome.FAILED, retry_in=60_000_000)
    clock.advance(timedelta(seconds=60) - timedelta(microseconds=1))
    assert (await store.promote(10)).count == 0
    clock.advance(timedelta(microseconds=1))
    assert (await store.promote(10)).count == 1
    (again,) = await claim(store)
    assert (again.attempt, again.fence) == (2, 2)


async def test_a_graceful_stop_costs_no_attempt(store: Store) -> None:
    held = await put_and_claim(store, max_attempts=1)
    for _ in range(3):
        assert await tell(store, held, Outcome.HANDED_BACK)
        (held,) = await claim(store)
        assert held.attempt == 1
    assert await tell(store, held, Outcome.SUCCEEDED)
    assert await outcomes_of(store, held.run_id) == [Outcome.HANDED_BACK] * 3 + [Outcome.SUCCEEDED]


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_a_stale_fence_changes_nothing(store: Store, clock: ManualClock, outcome: Outcome) -> None:
    zombie = await put_and_claim(store)
    clock.advance(LEASE + SECOND)
    await store.reap(10)
    assert not await tell(store, zombie, outcome, retry_in=0) or outcome is Outcome.LOST
    assert await state_of(store, zombie.run_id) is RunState.QUEUED
    (current,) = await claim(store, worker="worker-2")
    assert not await tell(store, zombie, outcome, retry_in=0) or outcome is Outcome.LOST
    run = await store.get_run(zombie.run_id)
    assert (run.state, run.fence, run.worker_id) == (RunState.RUNNING, current.fence, "worker-2")
    assert await tell(store, current, Outcome.SUCCEEDED)


async def test_a_fence_from_the_future_is_refused(store: Store) -> None:
    held = await put_and_claim(store)
    assert not await tell(store, msgspec.structs.replace(held, fence=held.fence + 1), Outcome.SUCCEEDED)
    assert await state_of(store, held.run_id) is RunState.RUNNING


async def test_a_report_of_a_run_that_does_not_exist_is_refused(store: Store) -> None:
    nobody = Report("00000000-0000-7000-8000-000000000000", 1, Outcome.SUCCEEDED)
    assert (await store.report([nobody])).refused == [nobody]


async def test_an_expired_lease_not_yet_taken_away_may_finish(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    clock.advance(10 * LEASE)
    assert await tell(store, held, Outcome.SUCCEEDED)
    assert (await store.reap(10)).ended == 0
    assert await state_of(store, held.run_id) is RunState.SUCCEEDED


@pytest.mark.parametrize(("outcome", "facts"), [(outcome, facts) for outcome, facts, *_ in ENDINGS])
async def test_repeating_a_report_gets_the_first_answer(
    store: Store, outcome: Outcome, facts: dict[str, object]
) -> None:
    held = await put_and_claim(store)
    assert await tell(store, held, outcome, **facts)
    before = await store.get_run(held.run_id)
    assert await tell(store, held, outcome, **facts)
    assert await store.get_run(held.run_id) == before
    assert await outcomes_of(store, held.run_id) == [outcome]


@pytest.mark.parametrize(("first", "then"), [(Outcome.SUCCEEDED, Outcome.FAILED), (Outcome.FAILED, Outcome.SUCCEEDED)])
async def test_finished_then_said_otherwise_is_refused(store: Store, first: Outcome, then: Outcome) -> None:
    held = await put_and_claim(store)
    assert await tell(store, held, first)
    before = await store.get_run(held.run_id)
    assert not await tell(store, held, then)
    assert await store.get_run(held.run_id) == before


@pytest.mark.parametrize("reverse", [False, True])
async def test_finished_and_failed_in_one_batch_is_one_of_them(store: Store, reverse: bool) -> None:
    held = await put_and_claim(store)
    both = [report_of(held, Outcome.SUCCEEDED), report_of(held, Outcome.FAILED)]
    if reverse:
        both.reverse()
    assert (await store.report(both)).refused == both[1:]
    assert await outcomes_of(store, held.run_id) == [both[0].outcome]
    assert (await state_of(store, held.run_id)).value == both[0].outcome.value


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
async def test_the_same_report_twice_in_one_batch_counts_once(store: Store, outcome: Outcome) -> None:
    held = await put_and_claim(store)
    assert (await store.report([report_of(held, outcome)] * 2)).refused == []
    assert await outcomes_of(store, held.run_id) == [outcome]


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
async def test_a_zombie_beside_the_current_holder_in_one_batch(
    store: Store, clock: ManualClock, outcome: Outcome
) -> None:
    zombie = await put_and_claim(store)
    clock.advance(LEASE + SECOND)
    await store.reap(10)
    (current,) = await claim(store)
    stale, fresh = report_of(zombie, outcome), report_of(current, outcome)
    assert (await store.report([stale, fresh])).refused == [stale]
    assert await outcomes_of(store, current.run_id) == [Outcome.LOST, outcome]


async def test_mixed_batches(store: Store, woken: set[str | None]) -> None:
    outcomes = [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.HANDED_BACK, Outcome.CANCELLED, Outcome.SNOOZED]
    for _ in outcomes:
        await put(store)
    held = await claim(store)
    stale = Report(held[0].run_id, 99, Outcome.FAILED)
    reports = [report_of(one, outcome, retry_in=None) for one, outcome in zip(held, outcomes, strict=True)]
    woken.clear()
    told = await store.report([stale, *reports])
    assert told.refused == [stale]
    assert woken == {"default"}
    states = [await state_of(store, one.run_id) for one in held]
    assert states == [RunState.SUCCEEDED, RunState.FAILED, RunState.QUEUED, RunState.CANCELLED, RunState.QUEUED]


async def test_a_run_that_waits_again_is_announced_so_that_the_promoter_looks_when_it_is_due(
    store: Store, woken: set[str | None]
) -> None:
    held = await put_and_claim(store)
    woken.clear()
    await store.report([report_of(held, Outcome.FAILED, retry_in=1_000)])
    assert woken == {held.queue}


async def test_finished_and_failed_at_once_has_one_winner(store: Store, second: Store) -> None:
    for _ in range(5):
        held = await put_and_claim(store)
        succeeded, failed = await asyncio.gather(
            tell(store, held, Outcome.SUCCEEDED), tell(second, held, Outcome.FAILED)
        )
        assert succeeded != failed
        state = await state_of(store, held.run_id)
        assert state is (RunState.SUCCEEDED if succeeded else RunState.FAILED)
        assert len(await store.attempts(held.run_id)) == 1


async def test_the_same_batch_reported_twice_at_once_is_accepted_once(store: Store, second: Store) -> None:
    for _ in range(40):
        await put(store)
    reports = [report_of(held, Outcome.SUCCEEDED) for held in await claim(store)]
    told = await asyncio.gather(store.report(reports), second.report(reports[::-1]))
    assert [one.refused for one in told] == [[], []]
    assert [len(await store.attempts(one.run_id)) for one in reports] == [1] * 40


async def test_nothing_to_report(store: Store) -> None:
    assert (await store.report([])).refused == []
