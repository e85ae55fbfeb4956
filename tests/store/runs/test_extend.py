"""Heartbeats: leases renewed, lost ones named, requests to stop brought back."""

import asyncio

import asyncpg
import msgspec

from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.values.instants import instant
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import (
    LEASE,
    LEASE_MICROS,
    WORKER,
    claim,
    finish,
    put,
    put_and_claim,
    state_of,
    tell,
)


async def test_a_renewed_lease_is_not_reaped(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    clock.advance(LEASE - SECOND)
    answer = await store.extend(WORKER, [(held.run_id, held.fence)], LEASE_MICROS)
    assert (answer.lost, answer.cancelling) == (set(), set())
    clock.advance(LEASE - SECOND)
    assert (await store.reap(10)).requeued == 0
    (attempt,) = await store.attempts(held.run_id)
    assert attempt.lease_until == instant(clock.micros()) + SECOND


async def test_an_expired_lease_not_yet_taken_away_may_renew(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    clock.advance(3 * LEASE)
    assert (await store.extend(WORKER, [(held.run_id, held.fence)], LEASE_MICROS)).lost == set()
    assert (await store.reap(10)).requeued == 0


async def test_a_lease_that_was_taken_away_is_lost(store: Store, clock: ManualClock) -> None:
    zombie = await put_and_claim(store)
    kept = await put_and_claim(store)
    clock.advance(LEASE - SECOND)
    await store.extend(WORKER, [(kept.run_id, kept.fence)], LEASE_MICROS)
    clock.advance(2 * SECOND)
    await store.reap(10)
    both = [(zombie.run_id, zombie.fence), (kept.run_id, kept.fence)]
    assert (await store.extend(WORKER, both, LEASE_MICROS)).lost == {zombie.run_id}
    (again,) = await claim(store, worker="worker-2")
    assert again.run_id == zombie.run_id
    assert (await store.extend(WORKER, both, LEASE_MICROS)).lost == {zombie.run_id}


async def test_an_old_fence_renews_nothing(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    assert (await store.extend(WORKER, [(held.run_id, held.fence - 1)], LEASE_MICROS)).lost == {held.run_id}
    clock.advance(LEASE + SECOND)
    assert (await store.reap(10)).requeued == 1


async def test_a_request_to_stop_is_told(store: Store) -> None:
    asked, other = await put_and_claim(store), await put_and_claim(store)
    await store.cancel(asked.run_id, None, None)
    both = [(asked.run_id, asked.fence), (other.run_id, other.fence)]
    for _ in range(2):
        answer = await store.extend(WORKER, both, LEASE_MICROS)
        assert (answer.lost, answer.cancelling) == (set(), {asked.run_id})


async def test_nothing_held_is_still_a_sign_of_life(store: Store) -> None:
    answer = await store.extend(WORKER, [], LEASE_MICROS)
    assert (answer.lost, answer.cancelling) == (set(), set())


async def test_leases_are_found_by_boot_id(store: Store) -> None:
    await put(store)
    await put(store)
    (first,) = await claim(store, 1, worker="worker:boot-1")
    (other,) = await claim(store, 1, worker="worker:boot-2")
    assert await store.leases_of("worker:boot-1") == [(first.run_id, first.fence)]
    assert await store.leases_of("worker:boot-2") == [(other.run_id, other.fence)]
    assert await store.leases_of("worker") == []
    await finish(store, first)
    assert await store.leases_of("worker:boot-1") == []


async def test_heartbeats_and_completions_at_once(store: Store, second: Store) -> None:
    """A completion may make a lease look lost; what it must not do is deadlock or renew a finished one."""
    for _ in range(30):
        await put(store)
    held = await claim(store)
    pairs = [(one.run_id, one.fence) for one in held]
    beats = [second.extend(msgspec.structs.replace(WORKER, id=f"w{n}"), pairs, LEASE_MICROS) for n in range(10)]
    ends = [tell(store, one, Outcome.SUCCEEDED if n % 2 else Outcome.FAILED) for n, one in enumerate(held)]
    told = await asyncio.gather(*ends, *beats)
    assert all(told[: len(ends)])
    states = {await state_of(store, one.run_id) for one in held}
    assert states == {RunState.SUCCEEDED, RunState.FAILED}


async def test_a_lease_locked_by_a_completion_is_not_lost(
    postgres_store: Store, postgres_database: PostgresDatabase
) -> None:
    held = await put_and_claim(postgres_store)
    other = await asyncpg.connect(postgres_database.url)
    async with other.transaction():
        await other.execute("delete from rota_lease where run_id = $1", held.run_id)
        answer = await postgres_store.extend(WORKER, [(held.run_id, held.fence)], LEASE_MICROS)
    await other.close()
    assert (answer.lost, answer.cancelling) == (set(), set())


async def test_a_lease_whose_notes_are_being_written_is_renewed(
    postgres_store: Store, postgres_database: PostgresDatabase, clock: ManualClock
) -> None:
    held = await put_and_claim(postgres_store)
    clock.advance(LEASE - SECOND)
    other = await asyncpg.connect(postgres_database.url)
    async with other.transaction():
        await other.execute("select run_id from rota_lease where run_id = $1 for key share", held.run_id)
        await postgres_store.extend(WORKER, [(held.run_id, held.fence)], LEASE_MICROS)
    await other.close()
    clock.advance(2 * SECOND)
    assert (await postgres_store.reap(10)).requeued == 0
