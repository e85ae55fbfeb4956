"""Promote: runs whose time has come may be claimed."""

import asyncio
from datetime import timedelta

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.states import RunState
from rota.store import Store
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import claim, ids, make, put, state_of

MICROSECOND = timedelta(microseconds=1)


async def test_never_early(store: Store, clock: ManualClock) -> None:
    run_id = await put(store, delay="10s")
    clock.advance(10 * SECOND - MICROSECOND)
    promoted = await store.promote(10)
    assert (promoted.count, promoted.next_in) == (0, 1)
    assert await state_of(store, run_id) is RunState.SCHEDULED
    clock.advance(MICROSECOND)
    promoted = await store.promote(10)
    assert (promoted.count, promoted.next_in) == (1, None)
    assert await state_of(store, run_id) is RunState.QUEUED
    assert ids(await claim(store)) == [run_id]


async def test_nothing_waits(store: Store) -> None:
    await put(store)
    promoted = await store.promote(10)
    assert (promoted.count, promoted.next_in) == (0, None)


async def test_says_when_the_next_one_is_due(store: Store, clock: ManualClock) -> None:
    await store.enqueue([make(delay="5s"), make(delay="20s")])
    assert (await store.promote(10)).next_in == 5_000_000
    clock.advance(6 * SECOND)
    promoted = await store.promote(10)
    assert (promoted.count, promoted.next_in) == (1, 14_000_000)


async def test_a_full_batch_leaves_the_rest_due(store: Store, clock: ManualClock) -> None:
    await store.enqueue([make(delay=f"{n}s") for n in range(1, 6)])
    clock.advance(10 * SECOND)
    first = await store.promote(3)
    assert first.count == 3
    assert first.next_in is not None
    assert first.next_in <= 0
    assert (await store.promote(3)).count == 2


@pytest.mark.parametrize("limits", [(), (Limit(max=9),)], ids=["free", "limited"])
async def test_a_batch_is_no_larger_than_it_may_be_whatever_the_database_thinks(
    store: Store, clock: ManualClock, limits: tuple[Limit, ...]
) -> None:
    """It takes the table for one of a single row: what is due could then be looked for again with each row."""
    work = JobDefinition(name="work", limits=limits)
    await put(store, work, delay="1s")
    await store.database.transact(lambda tx: tx.script("analyze"))
    await store.enqueue([make(work, delay="1s") for _ in range(9)])
    clock.advance(2 * SECOND)
    assert [(await store.promote(4)).count for _ in range(4)] == [4, 4, 2, 0]


async def test_promoted_runs_keep_their_place_by_due_time(store: Store, clock: ManualClock) -> None:
    later = await put(store, delay="2s")
    sooner = await put(store, delay="1s")
    clock.advance(3 * SECOND)
    await store.promote(10)
    newest = await put(store)
    assert ids(await claim(store)) == [sooner, later, newest]


async def test_many_promoters_at_once_promote_each_run_once(store: Store, second: Store, clock: ManualClock) -> None:
    await store.enqueue([make(delay="1s") for _ in range(50)])
    clock.advance(2 * SECOND)
    promoted = await asyncio.gather(*[[store, second][n % 2].promote(100) for n in range(8)])
    assert sum(one.count for one in promoted) == 50
    assert len(await claim(store)) == 50


async def test_queue_counts(store: Store) -> None:
    await store.enqueue([make(queue="mail"), make(queue="mail", delay="1s"), make(), make()])
    assert await store.queue_counts() == [("default", 0, 2, 0), ("mail", 0, 1, 1)]
    await claim(store, 2)
    await store.enqueue([make(queue="later", delay="1s")])
    assert await store.queue_counts() == [("default", 2, 0, 0), ("later", 0, 0, 1), ("mail", 0, 1, 1)]
