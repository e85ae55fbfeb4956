"""Retention: a finished run stays while it is among the newest, or young; keys and workers go when nobody needs one."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.states import Outcome, RunState
from rota.errors import NotRepeatable, UnknownRun
from rota.store import Store, new_id
from rota.store.databases.database import Tx
from rota.store.runs import enqueue, prune, read
from rota.values.clock import HostClock
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, finish, finish_all, make, put, state_of, tell

DAY = timedelta(days=1)
NOTHING = Retention(keep=0, keep_for=timedelta(0))


@pytest.fixture
def clock() -> ManualClock:
    """Not behind the host's, which is in the ids: what looks younger than it is, is kept."""
    clock = ManualClock()
    clock.advance(timedelta(microseconds=HostClock().micros() - clock.micros()) + SECOND)
    return clock


def keeping(keep: int, keep_for: timedelta) -> Retention:
    return Retention(keep, keep_for)


async def finished(store: Store, count: int, job: str = "work") -> list[str]:
    """Oldest first."""
    await store.enqueue([make(job) for _ in range(count)])
    found = await claim(store, count, known={job: 1})
    await finish_all(store, found)
    return sorted(held.run_id for held in found)


async def exists(store: Store, run_id: str) -> bool:
    try:
        return bool(await store.get_run(run_id))
    except UnknownRun:
        return False


async def test_the_newest_stay_however_old(store: Store, clock: ManualClock) -> None:
    runs = await finished(store, 10)
    clock.advance(400 * DAY)
    assert await store.prune(lambda _: keeping(3, DAY)) == 7
    assert [await exists(store, run_id) for run_id in runs] == [False] * 7 + [True] * 3
    assert await store.prune(lambda _: keeping(3, DAY)) == 0


async def test_the_young_stay_however_many(store: Store, clock: ManualClock) -> None:
    old = await finished(store, 4)
    clock.advance(DAY)
    young = await finished(store, 6)
    clock.advance(SECOND)
    assert await store.prune(lambda _: keeping(2, DAY)) == 4
    assert [await exists(store, run_id) for run_id in [*old, *young]] == [False] * 4 + [True] * 6


async def test_a_run_whose_id_is_of_a_host_far_ahead_stays_longer(store: Store, clock: ManualClock) -> None:
    await put(store, id=id_at(clock.micros() + DAY // timedelta(microseconds=1)))
    await finish_all(store, await claim(store))
    clock.advance(DAY - MINUTE)
    assert await store.prune(lambda _: NOTHING) == 0
    clock.advance(2 * MINUTE)
    assert await store.prune(lambda _: NOTHING) == 1


def id_at(micros: int) -> str:
    return str(UUID(int=micros // 1_000 << 80 | UUID(new_id()).int & (1 << 80) - 1))


async def test_a_janitor_that_finds_nothing_writes_nothing(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.extend(WORKER, [], LEASE_MICROS)
    await put(store, key="live")
    await finished(store, 3)
    await store.prune(lambda _: keeping(0, DAY))  # the keys of those that are over

    async def transact(*_: object, **__: object) -> None:
        raise AssertionError("it wrote")

    monkeypatch.setattr(store.database, "transact", transact)
    assert await store.prune(lambda _: keeping(0, DAY)) == 0


async def test_a_run_that_an_idempotency_key_still_names_stays(store: Store, clock: ManualClock) -> None:
    run_id = await put(store, idempotency_key="abc")
    await finish_all(store, await claim(store))
    others = await finished(store, 2)
    clock.advance(DAY - SECOND)
    assert await store.prune(lambda _: NOTHING) == len(others)
    assert await put(store, idempotency_key="abc") == run_id
    assert await exists(store, run_id)
    clock.advance(2 * SECOND)
    assert await store.prune(lambda _: NOTHING) == 1


async def test_attempts_go_with_their_run(store: Store, clock: ManualClock) -> None:
    (run_id,) = await finished(store, 1)
    clock.advance(SECOND)
    await store.prune(lambda _: NOTHING)
    assert await store.database.read(lambda tx: read.attempts(tx, run_id)) == []


async def test_live_runs_stay(store: Store, clock: ManualClock) -> None:
    ready, later = await put(store), await put(store, delay="900d")
    (running,) = await claim(store)
    assert running.run_id == ready
    clock.advance(400 * DAY)
    assert await store.prune(lambda _: NOTHING) == 0
    assert await state_of(store, ready) is RunState.RUNNING
    assert await state_of(store, later) is RunState.SCHEDULED


async def test_each_job_by_its_own_retention(store: Store, clock: ManualClock) -> None:
    await finished(store, 3, "a")
    await finished(store, 3, "b")
    await finished(store, 3, "c")
    clock.advance(2 * DAY)
    keep = {"a": keeping(1, DAY), "b": keeping(3, DAY), "c": keeping(0, 3 * DAY)}
    assert await store.prune(keep.__getitem__) == 2


async def test_more_than_a_bite(store: Store, clock: ManualClock) -> None:
    await finished(store, 2_300)
    clock.advance(SECOND)
    assert await store.prune(lambda _: keeping(50, timedelta(0))) == 2_250


async def test_two_janitors_at_once(store: Store, second: Store, clock: ManualClock) -> None:
    await finished(store, 500)
    clock.advance(SECOND)
    pruned = await asyncio.gather(store.prune(lambda _: NOTHING), second.prune(lambda _: NOTHING))
    assert sum(pruned) == 500


async def test_two_janitors_and_many_bites(
    store: Store, second: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "_BATCH", 10)
    await finished(store, 95)
    clock.advance(SECOND)
    pruned = await asyncio.gather(store.prune(lambda _: NOTHING), second.prune(lambda _: NOTHING))
    assert sum(pruned) == 95


async def test_a_janitor_leaves_what_was_enqueued_anew_under_a_pruned_id(store: Store, clock: ManualClock) -> None:
    (run_id,) = await finished(store, 1)
    clock.advance(SECOND)
    found = await store.database.read(lambda tx: prune.prunable(tx, "work", NOTHING))
    assert await store.prune(lambda _: NOTHING) == 1
    await put(store, id=run_id)
    assert await store.database.transact(prune.drop_runs(found, NOTHING)) == 0
    assert await state_of(store, run_id) is RunState.QUEUED


async def test_a_run_that_somebody_follows_since_the_look_stays(store: Store, clock: ManualClock) -> None:
    followed, other = await finished(store, 2)
    clock.advance(SECOND)
    found = await store.database.read(lambda tx: prune.prunable(tx, "work", NOTHING))
    await put(store, after=[followed], delay="1h")
    assert await store.database.transact(prune.drop_runs(found, NOTHING)) == 1
    assert (await exists(store, followed), await exists(store, other)) == (True, False)


async def test_a_key_whose_run_was_pruned_is_free(store: Store, clock: ManualClock) -> None:
    await put(store, key="k")
    (held,) = await claim(store)
    await finish(store, held)
    clock.advance(SECOND)
    await store.prune(lambda _: NOTHING)
    assert await key_count(store) == 0
    assert (await store.enqueue([make(key="k")]))[0].created


async def test_a_key_is_kept_while_held(store: Store, clock: ManualClock) -> None:
    await put(store, key="live")
    await put(store, "other", key="for an hour", unique={"period": "1h"})
    await finish_all(store, await claim(store, known={"other": 1}))
    clock.advance(timedelta(minutes=30))
    await store.prune(lambda _: NOTHING)
    assert await key_count(store) == 2


async def test_every_stale_key_goes_however_many(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "_BATCH", 10)
    await store.enqueue([make(key=f"k{n}") for n in range(25)])
    await finish_all(store, await claim(store))
    clock.advance(SECOND)
    await store.prune(lambda _: keeping(10_000, DAY))
    assert await key_count(store) == 0


async def key_count(store: Store) -> int:
    async def count(tx: Tx) -> int:
        return int((await tx.fetch_sql("select count(*) from rota_unique"))[0][0])

    return await store.database.read(count)


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
async def test_pruning_does_not_change_what_may_be_repeated(store: Store, clock: ManualClock, outcome: Outcome) -> None:
    once = JobDefinition(name="work", repeatable=False)
    await put(store, once)
    (held,) = await claim(store)
    await tell(store, held, outcome)
    clock.advance(SECOND)
    assert await store.prune(lambda _: NOTHING) == 1
    if outcome is Outcome.SUCCEEDED:
        with pytest.raises(NotRepeatable):
            await put(store, once)
    else:
        await put(store, once)


async def test_a_key_taken_over_while_the_janitor_waits_for_it_is_kept(
    postgres_store: Store, clock: ManualClock
) -> None:
    await put(postgres_store, key="k")
    (held,) = await claim(postgres_store)
    await finish(postgres_store, held)
    clock.advance(SECOND)
    new, inside, leave = make(key="k"), asyncio.Event(), asyncio.Event()

    async def slowly(tx: Tx) -> None:
        await enqueue.enqueue(tx, [new])
        inside.set()
        await leave.wait()

    slow = asyncio.create_task(postgres_store.database.transact(slowly))
    await inside.wait()
    janitor = asyncio.create_task(postgres_store.prune(lambda _: Retention()))
    await asyncio.wait([janitor], timeout=0.3)  # it skips the key, or waits for it
    leave.set()
    await asyncio.gather(slow, janitor)
    assert (await postgres_store.enqueue([make(key="k")]))[0].id == new.id


async def test_workers_long_silent_are_forgotten(store: Store, clock: ManualClock) -> None:
    await store.extend(WORKER, [], LEASE_MICROS)
    clock.advance(DAY - SECOND)
    await store.prune(lambda _: NOTHING)
    assert await worker_ids(store) == [WORKER.id]
    clock.advance(2 * SECOND)
    await store.prune(lambda _: NOTHING)
    assert await worker_ids(store) == []


async def worker_ids(store: Store) -> list[str]:
    async def ids(tx: Tx) -> list[str]:
        return [row[0] for row in await tx.fetch_sql("select id from rota_worker order by id")]

    return await store.database.read(ids)
