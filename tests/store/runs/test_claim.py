"""Claim: the right runs in the right order, and never the same run twice."""

import asyncio
from datetime import timedelta

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.runs.claim import Watermark
from rota.core.states import Outcome, RunState
from rota.store import Store, open_database
from rota.values.instants import instant
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, claim, ids, make, put, put_and_claim, state_of, tell
from tests.support.wait import PATIENCE


async def test_a_claim_is_a_lease_with_a_fence(store: Store, clock: ManualClock) -> None:
    held = await put_and_claim(store, payload={"a": 1}, scope=("account", "7"), key="k", max_attempts=3)
    assert (held.fence, held.attempt, held.job, held.job_version, held.payload) == (1, 1, "work", 1, '{"a":1}')
    assert (held.scope_kind, held.scope_id, held.key, held.max_attempts) == ("account", "7", "k", 3)
    run = await store.get_run(held.run_id)
    assert (run.state, run.fence, run.attempt, run.worker_id) == (RunState.RUNNING, 1, 1, "worker-1")
    (attempt,) = await store.attempts(held.run_id)
    assert attempt.lease_until == instant(clock.micros()) + LEASE


async def test_higher_priority_first_then_oldest_due(store: Store, clock: ManualClock) -> None:
    now = instant(clock.micros())
    low = await put(store, priority=-5)
    newer = await put(store)
    older = await put(store, run_at=now - SECOND)
    high = await put(store, priority=5)
    taken = [(await claim(store, 1))[0].run_id for _ in range(4)]
    assert taken == [high, older, newer, low]


async def test_those_claimed_together_come_in_that_order_too(store: Store, clock: ManualClock) -> None:
    now = instant(clock.micros())
    low = await put(store, priority=-5)
    newer = await put(store)
    older = await put(store, run_at=now - SECOND)
    high = await put(store, priority=5)
    assert ids(await claim(store)) == [high, older, newer, low]


async def test_first_in_first_out(store: Store, clock: ManualClock) -> None:
    expected = []
    for _ in range(10):
        expected.append(await put(store))
        clock.advance(timedelta(milliseconds=1))
    assert ids(await claim(store, 4)) == expected[:4]
    assert ids(await claim(store)) == expected[4:]


async def test_only_the_queues_asked_for(store: Store) -> None:
    mail, _ = await put(store, queue="mail"), await put(store, queue="other")
    assert ids(await claim(store, queues=["mail"])) == [mail]


async def test_each_queue_has_its_own_limit(store: Store) -> None:
    await store.enqueue([make(queue=queue) for queue in ("a", "b") for _ in range(5)])
    found = await claim(store, 2, queues=["a", "b"])
    assert [held.queue for held in found] == ["a", "a", "b", "b"]


async def test_unknown_jobs_are_left_for_others(store: Store) -> None:
    await put(store, "strange", priority=100)
    known = await put(store)
    assert ids(await claim(store, 1)) == [known]
    assert await claim(store) == []
    assert len(await claim(store, known={"strange": 1})) == 1


async def test_runs_of_a_newer_version_wait_for_a_worker_that_has_it(store: Store) -> None:
    newer = await put(store, JobDefinition(name="work", version=3))
    assert await claim(store, known={"work": 2}) == []
    assert ids(await claim(store, known={"work": 3, "else": 1})) == [newer]


async def test_runs_of_an_older_version_are_taken(store: Store) -> None:
    older = await put(store, JobDefinition(name="work", version=2))
    assert ids(await claim(store, known={"else": 1, "work": 5})) == [older]


async def test_solo_runs_are_not_claimed_into_a_buffer(store: Store) -> None:
    alone = await put(store, JobDefinition(name="work", on_lost="fail"))
    plain = await put(store)
    assert ids(await claim(store, solo=False)) == [plain]
    assert ids(await claim(store, solo=True)) == [alone]


async def test_a_watermark_skips_what_comes_before_it(store: Store) -> None:
    first, second, third = [await put(store, id=f"00000000-0000-7000-8000-00000000000{n}") for n in (1, 2, 3)]
    (held,) = await claim(store, 1)
    assert held.run_id == first
    after = Watermark(held.rank, held.run_at, second)
    assert ids(await claim(store, after=after)) == [third]
    assert ids(await claim(store)) == [second]


async def test_nothing_asked_nothing_claimed(store: Store) -> None:
    await put(store)
    assert await claim(store, queues=[]) == []


@pytest.mark.parametrize("wanted", [1, 3, 40])
async def test_fifty_claimers_racing_never_share_a_run(store: Store, second: Store, wanted: int) -> None:
    runs = [make(priority=n % 3) for n in range(120)]
    await store.enqueue(runs)
    racers = [claim([store, second][n % 2], wanted, worker=f"w{n}") for n in range(50)]
    taken = [held.run_id for found in await asyncio.gather(*racers) for held in found]
    while rest := await claim(store):
        taken += ids(rest)
    assert sorted(taken) == sorted(run.id for run in runs)


async def test_stores_of_many_processes_never_share_a_run(store: Store, database_url: str, clock: ManualClock) -> None:
    runs = [make() for _ in range(60)]
    await store.enqueue(runs)
    others = [Store(open_database(database_url, clock)) for _ in range(10)]
    found = await asyncio.gather(*[claim(other, 7, worker=f"w{n}") for n, other in enumerate(others)])
    taken = [held.run_id for part in found for held in part]
    while rest := await claim(store):
        taken += ids(rest)
    for other in others:
        await other.close()
    assert sorted(taken) == sorted(run.id for run in runs)


async def test_enqueue_claim_and_report_at_once_lose_nothing(store: Store, second: Store) -> None:
    done: list[str] = []

    async def produce() -> None:
        for _ in range(10):
            await store.enqueue([make() for _ in range(10)])

    async def consume(name: str, own: Store) -> None:
        while len(done) < 100:
            for held in await claim(own, 5, worker=name):
                assert await tell(own, held, Outcome.SUCCEEDED)
                done.append(held.run_id)

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(produce(), consume("a", store), consume("b", second), consume("c", second))
    assert len(done) == len(set(done)) == 100
    assert await store.queue_counts() == []


async def test_each_claim_of_a_run_has_a_greater_fence(store: Store) -> None:
    run_id = await put(store, max_attempts=5)
    fences = []
    for _ in range(3):
        (held,) = await claim(store)
        fences.append(held.fence)
        assert await tell(store, held, Outcome.FAILED, retry_in=0)
    assert fences == sorted(set(fences))
    assert await state_of(store, run_id) is RunState.QUEUED
