"""Reap: leases nobody renewed, and cancels whose grace is over."""

import asyncio

import asyncpg
import pytest

from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.store.databases.postgres.postgres import PostgresDatabase
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.runs import (
    LEASE,
    LEASE_MICROS,
    WORKER,
    claim,
    ids,
    outcomes_of,
    put,
    put_and_claim,
    state_of,
    tell,
)


async def test_a_run_whose_worker_dies_is_queued_again_at_once(
    store: Store, clock: ManualClock, woken: set[str | None]
) -> None:
    held = await put_and_claim(store)
    clock.advance(LEASE)
    assert (await store.reap(10)).requeued == 0
    clock.advance(SECOND)
    woken.clear()
    reaped = await store.reap(10)
    assert (reaped.requeued, reaped.ended, woken) == (1, 0, {"default"})
    run = await store.get_run(held.run_id)
    assert (run.state, run.attempt, run.fence) == (RunState.QUEUED, 1, 2)
    (lost,) = await store.attempts(held.run_id)
    assert (lost.outcome, lost.started_at) == (Outcome.LOST, None)
    assert lost.error is not None
    assert lost.error.code == "stale_timeout"


async def test_lost_leases_cost_attempts_until_none_is_left(store: Store, clock: ManualClock) -> None:
    run_id = await put(store, max_attempts=3)
    fences = []
    for _ in range(3):
        (held,) = await claim(store)
        fences.append(held.fence)
        clock.advance(LEASE + SECOND)
        await store.reap(10)
    run = await store.get_run(run_id)
    assert (run.state, run.attempt) == (RunState.EXPIRED, 3)
    assert fences == sorted(set(fences))
    assert run.fence > fences[-1]
    assert await outcomes_of(store, run_id) == [Outcome.LOST] * 3
    assert run.error is not None
    assert run.error.code == "stale_timeout"


async def test_on_lost_fail_is_never_run_again(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store, JobDefinition(name="work", on_lost="fail"))
    clock.advance(LEASE + SECOND)
    reaped = await store.reap(10)
    assert (reaped.requeued, reaped.ended) == (0, 1)
    assert await state_of(store, held.run_id) is RunState.EXPIRED


async def test_the_reaper_needs_no_knowledge_of_the_job(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store, "known-elsewhere", payload={"strange": [1]})
    clock.advance(LEASE + SECOND)
    assert (await store.reap(10)).requeued == 1
    assert await state_of(store, held.run_id) is RunState.QUEUED


async def test_a_cancel_past_its_grace_ends_though_the_lease_is_renewed(store: Store, clock: ManualClock) -> None:
    definition = JobDefinition(name="work", cancel=CancelPolicy(grace=MINUTE))
    await store.save_jobs([definition])
    held = await put_and_claim(store, definition)
    await store.cancel(held.run_id, "enough", "someone")
    for _ in range(6):
        clock.advance(10 * SECOND)
        await store.extend(WORKER, [(held.run_id, held.fence)], LEASE_MICROS)
        assert (await store.reap(10)).ended == 0
    clock.advance(SECOND)
    assert (await store.reap(10)).ended == 1
    run = await store.get_run(held.run_id)
    assert (run.state, run.fence, run.reason) == (RunState.CANCELLED, held.fence + 1, "enough")


async def test_a_dead_worker_that_was_asked_to_cancel_is_cancelled(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    clock.advance(LEASE - SECOND)
    await store.cancel(held.run_id, None, None)
    clock.advance(2 * SECOND)
    await store.reap(10)
    assert await state_of(store, held.run_id) is RunState.CANCELLED


async def test_a_batch_has_a_limit_and_the_rest_follows(store: Store, clock: ManualClock) -> None:
    for _ in range(5):
        await put(store)
    await claim(store)
    clock.advance(LEASE + SECOND)
    assert [(await store.reap(2)).requeued for _ in range(4)] == [2, 2, 1, 0]


async def test_the_oldest_expiry_goes_first(store: Store, clock: ManualClock) -> None:
    first = await put_and_claim(store)
    clock.advance(SECOND)
    second = await put_and_claim(store)
    clock.advance(LEASE + SECOND)
    await store.reap(1)
    assert await state_of(store, first.run_id) is RunState.QUEUED
    assert await state_of(store, second.run_id) is RunState.RUNNING


async def test_many_reapers_take_each_lease_away_once(store: Store, second: Store, clock: ManualClock) -> None:
    for _ in range(40):
        await put(store)
    held = await claim(store)
    clock.advance(LEASE + SECOND)
    reaped = await asyncio.gather(*[[store, second][n % 2].reap(7) for n in range(10)])
    total = sum(one.requeued for one in reaped) + (await store.reap(100)).requeued
    assert total == 40
    assert {(await store.get_run(run_id)).fence for run_id in ids(held)} == {2}


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
async def test_reaper_and_report_racing_have_one_winner(
    store: Store, second: Store, clock: ManualClock, outcome: Outcome
) -> None:
    for _ in range(5):
        held = await put_and_claim(store)
        clock.advance(LEASE + SECOND)
        accepted, reaped = await asyncio.gather(tell(second, held, outcome), store.reap(10))
        assert accepted != bool(reaped.requeued)
        assert await outcomes_of(store, held.run_id) == [outcome if accepted else Outcome.LOST]
        if not accepted:
            await store.cancel(held.run_id, None, None)


async def test_a_lease_that_somebody_holds_does_not_block_the_others(
    postgres_store: Store, postgres_database: PostgresDatabase, clock: ManualClock
) -> None:
    first, second = await put_and_claim(postgres_store), await put_and_claim(postgres_store)
    clock.advance(LEASE + SECOND)
    other = await asyncpg.connect(postgres_database.url)
    async with other.transaction():
        await other.execute("select from rota_lease where run_id = $1 for update", first.run_id)
        assert (await postgres_store.reap(10)).requeued == 1
    await other.close()
    assert await state_of(postgres_store, second.run_id) is RunState.QUEUED
    assert (await postgres_store.reap(10)).requeued == 1
