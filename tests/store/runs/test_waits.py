"""Runs that wait for others: they go on when those have ended, however that was, and whoever raced."""

import asyncio

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.runs import waits
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, claim, claim_limited, finish, ids, put, put_and_claim, state_of, tell

OTHER = "other"


async def put_after(store: Store, *after: str, job: JobDefinition | str = OTHER, delay: str = "0s") -> str:
    """A run that waits, as a planner would make it."""
    run_id = await put(store, job, delay=delay)

    async def body(tx: Tx) -> None:
        if await waits.follow(tx, [(run_id, one) for one in after]):
            await tx.fetch_sql("update rota_ready set hold = 3 where run_id = :id", id=run_id)

    await store.database.transact(body)
    return run_id


async def others(store: Store) -> list[str]:
    return ids(await claim(store, known={OTHER: 1}))


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CANCELLED])
async def test_a_run_goes_on_when_its_predecessor_has_ended(store: Store, outcome: Outcome) -> None:
    held = await put_and_claim(store)
    follower = await put_after(store, held.run_id)
    assert await state_of(store, follower) is RunState.SCHEDULED
    assert await others(store) == []
    assert await tell(store, held, outcome)
    assert await state_of(store, follower) is RunState.QUEUED
    assert await others(store) == [follower]


async def test_a_predecessor_that_is_retried_has_not_ended(store: Store) -> None:
    held = await put_and_claim(store)
    follower = await put_after(store, held.run_id)
    assert await tell(store, held, Outcome.FAILED, retry_in=0)
    assert await others(store) == []
    await finish(store, (await claim(store))[0])
    assert await others(store) == [follower]


async def test_a_lost_predecessor(store: Store, clock: ManualClock, woken: set[str | None]) -> None:
    held = await put_and_claim(store, max_attempts=1)
    follower = await put_after(store, held.run_id)
    clock.advance(LEASE + SECOND)
    woken.clear()
    await store.reap(10)
    assert woken == {"default"}
    assert await others(store) == [follower]


async def test_a_predecessor_cancelled_before_it_began(store: Store) -> None:
    before = await put(store)
    follower = await put_after(store, before)
    await store.cancel(before, None, None)
    assert await others(store) == [follower]


async def test_several_predecessors(store: Store) -> None:
    first, second = await put(store), await put(store)
    follower = await put_after(store, first, second)
    one, two = await claim(store)
    await finish(store, one)
    assert await others(store) == []
    await finish(store, two)
    assert await others(store) == [follower]


async def test_a_predecessor_that_has_ended_already(store: Store) -> None:
    held = await put_and_claim(store)
    await finish(store, held)
    follower = await put_after(store, held.run_id)
    assert await others(store) == [follower]


async def test_after_that_its_time_and_its_limit_count(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store)
    limited = JobDefinition(name=OTHER, limits=(Limit(max=1),))
    late = await put_after(store, held.run_id, job=limited, delay="10s")
    due = await put_after(store, held.run_id, job=limited)
    await finish(store, held)
    assert await state_of(store, late) is RunState.SCHEDULED
    assert await others(store) == []
    (first,) = await claim_limited(store, known={OTHER: 1})
    assert first.run_id == due
    clock.advance(11 * SECOND)
    await store.promote(10)
    assert await claim_limited(store, known={OTHER: 1}) == []
    await finish(store, first)
    assert ids(await claim_limited(store, known={OTHER: 1})) == [late]


async def test_a_run_that_waits_can_be_cancelled(store: Store) -> None:
    held = await put_and_claim(store)
    follower = await put_after(store, held.run_id)
    assert (await store.cancel(follower, None, None)).state is RunState.CANCELLED
    await finish(store, held)
    assert await others(store) == []


@pytest.mark.parametrize("length", [1, 2, 3])
async def test_whoever_waits_for_one_that_is_cancelled_waits_for_what_that_waited_for(
    store: Store, length: int
) -> None:
    held = await put_and_claim(store)
    chain = [held.run_id]
    for _ in range(length + 1):
        chain.append(await put_after(store, chain[-1]))
    for middle in chain[1:-1]:
        await store.cancel(middle, None, None)
    assert await others(store) == [], "the first one still runs"
    await finish(store, held)
    assert await others(store) == [chain[-1]]


async def test_a_cancel_in_the_middle_races_the_end_of_the_first(store: Store, second: Store) -> None:
    for _ in range(20):
        held = await put_and_claim(store)
        middle = await put_after(store, held.run_id)
        last = await put_after(store, middle)
        await asyncio.gather(finish(store, held), second.cancel(middle, None, None))
        await store.tidy()
        assert last in await others(store)


async def test_stragglers_are_found_by_the_reaper(store: Store) -> None:
    held = await put_and_claim(store)
    first, second = await put_after(store, held.run_id), await put_after(store, held.run_id)

    async def forget(tx: Tx) -> None:
        await tx.fetch_sql("update rota_run set followed = 0")
        await tx.fetch_sql("delete from rota_wait where run_id = :id", id=second)

    await store.database.transact(forget)
    await finish(store, held)
    if store.database.dialect.name == "postgres":
        assert await others(store) == []
    await store.tidy()
    assert sorted(await others(store)) == sorted([first, second])


async def test_following_races_the_completion(store: Store, second: Store) -> None:
    for _ in range(30):
        held = await put_and_claim(store)
        follower, _ = await asyncio.gather(put_after(second, held.run_id), finish(store, held))
        assert await others(store) == [follower]


async def test_predecessors_that_end_at_once(store: Store, second: Store) -> None:
    for _ in range(30):
        first, other = await put(store), await put(store)
        follower = await put_after(store, first, other)
        one, two = await claim(store)
        await asyncio.gather(finish(store, one), finish(second, two))
        assert await others(store) == [follower]
