"""Looks that go through a table in turn, some of it at a time: each finds its share, and in the end all is found."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import msgspec
import pytest

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.limits.limits import Limit
from rota.core.states import Outcome, RunState
from rota.store import Store, janitor
from rota.store.databases.database import Row, Tx
from rota.store.databases.pinned_plans import last_of, turn
from rota.store.limits import strays
from rota.store.runs import enqueue, prune
from rota.values.clock import HostClock
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, finish_all, ids, make, put, state_of, tell

FEW = 5
ONE_EACH = JobDefinition(name="work", limits=(Limit(max=1, by=("a",)),))


async def rows(store: Store, *statements: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        found: list[Row] = []
        for sql in statements:
            found = list(await tx.fetch_sql(sql))
        return found

    return await store.database.transact(body)


async def states(store: Store, run_ids: Iterable[str]) -> list[RunState]:
    return [await state_of(store, run_id) for run_id in run_ids]


def test_a_bite_that_is_not_full_is_the_last() -> None:
    assert last_of([("a",), ("b",)], 2) == "b"
    assert last_of([("a",)], 2) is None
    assert last_of([], 2) is None
    assert turn([("a", 0), ("b", 1)], 2, [("b", 1)]).found == [("b", 1)]


async def test_limits_shut_with_a_free_slot(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "_LIMITS", 2)
    waiting = [await put(store, ONE_EACH, payload={"a": n}) for n in range(FEW)]
    await rows(store, "update rota_limit set shut = 1")
    found = []
    for _ in range(3):
        await store.tidy()
        found.append(ids(await claim_limited(store)))
    assert [len(share) for share in found] == [2, 2, 1]
    assert sorted(run_id for share in found for run_id in share) == sorted(waiting)


@pytest.mark.parametrize("slow", [False, True])
async def test_a_limit_shut_while_a_run_came_does_not_wait_for_its_turn(
    postgres_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    """Whoever shut it looks again, though others are before it; and once more, if the enqueue took long."""
    store = postgres_store
    monkeypatch.setattr(strays, "_LIMITS", 1)
    for n in range(2 * FEW):
        await put(store, ONE_EACH, payload={"a": n})
    ((last,),) = await rows(store, "select run_id from rota_gate order by key desc limit 1")
    (held,) = [one for one in await claim_limited(store) if one.run_id == str(last)]
    await finish_all(store, [held])
    clock.advance(timedelta(seconds=1))
    new, there, go = make(ONE_EACH, payload=msgspec.json.decode(held.payload)), asyncio.Event(), asyncio.Event()

    async def slowly(tx: Tx) -> None:
        await enqueue.enqueue(tx, [new])
        there.set()
        await go.wait()

    coming = asyncio.create_task(store.database.transact(slowly))
    await there.wait()
    assert await claim_limited(store) == []  # it shuts the limit
    if slow:
        await store.tidy()
    go.set()
    await coming
    assert await claim_limited(store) == []
    await store.tidy()
    assert ids(await claim_limited(store)) == [new.id]


async def test_limits_that_nobody_uses(store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "_LIMITS", 2)
    for n in range(FEW):
        await put(store, ONE_EACH, payload={"a": n})
    await finish_all(store, await claim_limited(store))
    for _ in range(2):
        clock.advance(timedelta(seconds=1))
        await claim_limited(store)
    clock.advance(timedelta(minutes=2))
    left = []
    for _ in range(3):
        await store.tidy()
        left.append(len(await rows(store, "select key from rota_limit")))
    assert left == [3, 1, 0]


async def test_runs_that_wait_for_what_has_ended(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that is awaited counts once, however many wait for it."""
    monkeypatch.setattr(strays, "_BATCH", 1)
    first = [await put(store) for _ in range(3)]
    following = [await put(store, after=[run_id]) for run_id in first for _ in range(2)]
    await rows(
        store,
        "update rota_run set state = 'succeeded', finished_at = 1, attempt = 1, fence = 1 where followed = 1",
        "delete from rota_ready where hold = 0",
    )
    released = []
    for _ in range(3):
        await store.tidy()
        released.append((await states(store, following)).count(RunState.QUEUED))
    assert released == [2, 4, 6]


async def test_runs_that_wait_for_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "_BATCH", 2)
    first = await put(store)
    following = [await put(store, after=[first]) for _ in range(3)]
    await rows(store, "delete from rota_wait")
    released = []
    for _ in range(2):
        await store.tidy()
        released.append((await states(store, following)).count(RunState.QUEUED))
    assert released == [2, 3]


async def test_keys_that_nobody_holds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thorough look goes through all of them."""
    monkeypatch.setattr(prune, "_BATCH", 1)
    monkeypatch.setattr(janitor, "_KEY_BATCHES", 2)
    for n in range(2 * FEW):
        await put(store, unique=str(n))
    await finish_all(store, await claim(store))
    left = []
    for thorough in (False, False, True):
        await store.prune(lambda _: Retention(), thorough=thorough)
        left.append(len(await rows(store, "select key from rota_unique")))
    assert left == [8, 6, 0]


async def test_a_failed_run_is_kept_until_its_key_has_had_its_turn(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody knows any more that it failed: what may be done once would count as done."""
    monkeypatch.setattr(prune, "_BATCH", 1)
    monkeypatch.setattr(janitor, "_KEY_BATCHES", 1)
    clock.advance(timedelta(microseconds=HostClock().micros() - clock.micros()) + timedelta(seconds=1))
    once = JobDefinition(name="work", repeatable=False)
    for n in range(FEW):
        await put(store, once, scope=("account", str(n)))
    for one in await claim(store):
        await tell(store, one, Outcome.FAILED)
    clock.advance(timedelta(seconds=1))
    for _ in range(2 * FEW):
        await store.prune(lambda _: Retention(keep=0, keep_for=timedelta(0)), thorough=False)
    assert await rows(store, "select id from rota_run") == []
    for n in range(FEW):
        await put(store, once, scope=("account", str(n)))


async def test_keys_are_begun_with_anew_after_the_last(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "_BATCH", 2)
    await put(store, unique="a")
    await put(store, unique="b")
    for _ in range(2):
        await store.prune(lambda _: Retention(), thorough=False)
    await finish_all(store, await claim(store))
    for _ in range(2):
        await store.prune(lambda _: Retention(), thorough=False)
    assert await rows(store, "select key from rota_unique") == []
