"""Runs that follow others, and whoever ends, comes or cancels at the same moment."""

import asyncio
from typing import Any

import pytest

from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.store.databases.postgres.postgres import PostgresTx
from tests.store.runs.test_dependencies import enqueue, left_over, others, put_after
from tests.support.runs.runs import claim, finish, put, put_and_claim, state_of, tell
from tests.support.wait import until


async def test_an_end_and_a_follower_at_once(store: Store, second: Store) -> None:
    for outcome in (Outcome.SUCCEEDED, Outcome.FAILED) * 10:
        held = await put_and_claim(store)
        follower, _ = await asyncio.gather(put_after(second, held.run_id), tell(store, held, outcome))
        if outcome is Outcome.SUCCEEDED:
            assert await others(store) == [follower]
        else:
            assert await state_of(store, follower) is RunState.SKIPPED


async def test_predecessors_that_end_at_once(store: Store, second: Store) -> None:
    for outcome in (Outcome.SUCCEEDED, Outcome.FAILED) * 10:
        first, other = await put(store), await put(store)
        follower = await put_after(store, first, other)
        one, two = await claim(store)
        await asyncio.gather(finish(store, one), tell(second, two, outcome))
        if outcome is Outcome.SUCCEEDED:
            assert await others(store) == [follower]
        else:
            assert await state_of(store, follower) is RunState.SKIPPED
        assert await left_over(store) == []


async def somebody_waits(store: Store) -> bool:
    sql = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    return bool(await store.database.read(lambda tx: tx.fetch_sql(sql)))


class Resting:
    """The first transaction that sends `statement` rests after it until told to go on."""

    def __init__(self, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came, self.go = asyncio.Event(), asyncio.Event()
        fetch = PostgresTx.fetch

        async def resting(tx: PostgresTx, name: str, rows: Any = None, /, **values: object) -> Any:
            found = await fetch(tx, name, rows, **values)
            if name == statement and not self.came.is_set():
                self.came.set()
                await self.go.wait()
            return found

        monkeypatch.setattr(PostgresTx, "fetch", resting)


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
@pytest.mark.parametrize("statement", ["lock_followed", "insert_needs"])
async def test_an_end_waits_for_a_follower_that_is_about_to_be(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, statement: str
) -> None:
    held = await put_and_claim(postgres_store)
    resting = Resting(statement, monkeypatch)
    following = asyncio.create_task(put_after(postgres_store, held.run_id))
    await resting.came.wait()
    ending = asyncio.create_task(tell(postgres_store, held, outcome))
    await until(lambda: somebody_waits(postgres_store))
    resting.go.set()
    follower, _ = await asyncio.gather(following, ending)
    wanted = RunState.QUEUED if outcome is Outcome.SUCCEEDED else RunState.SKIPPED
    assert await state_of(postgres_store, follower) is wanted


@pytest.mark.parametrize(("outcome", "statement"), [(Outcome.SUCCEEDED, "complete"), (Outcome.FAILED, "end_runs")])
async def test_a_follower_waits_for_an_end_that_is_under_way(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, statement: str
) -> None:
    held = await put_and_claim(postgres_store)
    resting = Resting(statement, monkeypatch)
    ending = asyncio.create_task(tell(postgres_store, held, outcome))
    await resting.came.wait()
    following = asyncio.create_task(put_after(postgres_store, held.run_id))
    await until(lambda: somebody_waits(postgres_store))
    resting.go.set()
    follower, _ = await asyncio.gather(following, ending)
    wanted = RunState.QUEUED if outcome is Outcome.SUCCEEDED else RunState.SKIPPED
    assert await state_of(postgres_store, follower) is wanted


async def test_whoever_comes_to_follow_one_that_is_just_ending_in_vain(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came after the end had looked for those that it ends, and before it had ended the one that is followed."""
    store = postgres_store
    held = await put_and_claim(store)
    middle = await put_after(store, held.run_id)
    resting = Resting("beyond", monkeypatch)
    ending = asyncio.create_task(tell(store, held, Outcome.FAILED))
    await resting.came.wait()
    last = await put_after(store, middle)
    resting.go.set()
    await ending
    assert [await state_of(store, id) for id in (middle, last)] == [RunState.SKIPPED, RunState.SKIPPED]


async def test_two_ends_that_end_the_same_runs_in_vain(postgres_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finds the other's first: in the order of ids they wait, and do not deadlock."""
    store = postgres_store
    monkeypatch.setattr("rota.store.databases.postgres.postgres._TRIES", 1)
    first, second = await put(store), await put(store)
    call = await enqueue(
        store,
        m={"after": [first]},
        n={"after": [second]},
        x={"after": [first, "n"]},
        y={"after": [second, "m"]},
    )
    one, two = await claim(store)
    resting = Resting("lock_waiting", monkeypatch)
    ending = asyncio.create_task(tell(store, one, Outcome.FAILED))
    await resting.came.wait()
    other = asyncio.create_task(tell(store, two, Outcome.FAILED))
    await until(lambda: somebody_waits(store))
    resting.go.set()
    await asyncio.gather(ending, other)
    assert {await state_of(store, id) for id in call.values()} == {RunState.SKIPPED}
