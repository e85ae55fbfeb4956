"""Priority comes before turns, however many keys of a limit are open: a claim finds the first one in bounded work."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.runs.run import NewRun
from rota.core.states import Outcome
from rota.store import Store
from rota.store.databases.database import COMPARED, Tx
from tests.store.runs.test_dependency_races import Resting
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import claim, claim_limited, finish_all, ids, make, put, tell
from tests.support.wait import until_blocked

KEYS = COMPARED + 60
"""More keys than a claim for one slot compares."""
CROWD = JobDefinition(name="work", limits=(Limit(max=1, by=("a",)),))
LOW, HIGH = -10, 10

Bring = Callable[[Store, ManualClock], Awaitable[str]]


def under(customer: object, **options: Any) -> NewRun:
    return make(CROWD, payload={"a": customer}, **options)


_SERVED_FIRST = "update rota_limit set served_at = 0 where key = :key"
LAST = under("last").gates[0].key


async def serve(store: Store, clock: ManualClock, key: object) -> None:
    """Let this key be served last of all."""
    await store.enqueue([under(key, priority=100)])
    clock.advance(SECOND)
    await finish_all(store, await claim_limited(store, 1))
    clock.advance(SECOND)


async def crowd(store: Store, clock: ManualClock, priority: int = LOW) -> list[str]:
    """Let runs of a low priority wait under many keys, none of which was served so far."""
    clock.advance(timedelta(milliseconds=1))
    return [run.id for run in await store.enqueue([under(key, priority=priority) for key in range(KEYS)])]


async def ranks(store: Store) -> dict[str, int]:
    async def body(tx: Tx) -> dict[str, int]:
        return {str(key): int(rank) for key, rank in await tx.fetch_sql("select key, rank from rota_limit")}

    return await store.database.read(body)


async def enqueued(store: Store, clock: ManualClock) -> str:
    return (await store.enqueue([under("last", priority=HIGH)]))[0].id


async def due_later(store: Store, clock: ManualClock) -> str:
    (run,) = await store.enqueue([under("last", priority=HIGH, delay="1m")])
    await forget(store)
    clock.advance(timedelta(minutes=2))
    await store.promote(100)
    return run.id


async def tried_again(store: Store, clock: ManualClock) -> str:
    (run,) = await store.enqueue([under("last", priority=HIGH)])
    (held,) = await claim_limited(store, 1)
    await forget(store)
    assert await tell(store, held, Outcome.HANDED_BACK)
    return run.id


async def released(store: Store, clock: ManualClock) -> str:
    first = await put(store, "other")
    (run,) = await store.enqueue([under("last", priority=HIGH, after=(first,))])
    await forget(store)
    await finish_all(store, await claim(store, known={"other": 1}))
    return run.id


async def replaced(store: Store, clock: ManualClock) -> str:
    await store.enqueue([under("last", priority=LOW, unique={"on_conflict": "replace"}, key="it")])
    return (await store.enqueue([under("last", priority=HIGH, unique={"on_conflict": "replace"}, key="it")]))[0].id


async def of_an_older_program(store: Store, clock: ManualClock) -> str:
    """It knows nothing of ranks, so that its limits have an unknown one."""
    run = await enqueued(store, clock)

    async def body(tx: Tx) -> None:
        await tx.fetch_sql("update rota_limit set rank = -32768")

    await store.database.transact(body)
    return run


async def forget(store: Store, rank: int = 100) -> None:
    """As a claim that sees nobody waiting under the key that was served last, or only runs of this rank."""

    async def body(tx: Tx) -> None:
        await tx.fetch_sql("update rota_limit set rank = :rank where key = :key", key=LAST, rank=rank)

    await store.database.transact(body)


BROUGHT: list[Bring] = [enqueued, due_later, tried_again, released, replaced, of_an_older_program]


@pytest.mark.parametrize("bring", BROUGHT, ids=lambda bring: bring.__name__)
async def test_the_highest_priority_begins_first_though_its_key_was_served_last(
    store: Store, clock: ManualClock, bring: Bring
) -> None:
    await crowd(store, clock)
    await serve(store, clock, "last")
    wanted = await bring(store, clock)
    assert ids(await claim_limited(store, 1)) == [wanted]


async def test_a_run_that_its_limit_knows_nothing_of_is_found_by_the_sweep(store: Store, clock: ManualClock) -> None:
    """Its enqueue read the row before a claim changed it, and committed afterwards."""
    await crowd(store, clock)
    await serve(store, clock, "last")
    wanted = await enqueued(store, clock)
    await forget(store)
    await store.tidy()
    assert ids(await claim_limited(store, 1)) == [wanted]


async def test_the_sweep_knows_of_every_queue_under_a_limit(store: Store, clock: ManualClock) -> None:
    """The first of them has nothing but runs of a low priority."""
    await crowd(store, clock)
    await serve(store, clock, "last")
    await store.enqueue([under("last", priority=LOW, queue=queue) for queue in ("a", "b", "z")])
    await claim_limited(store, 1)
    wanted = await enqueued(store, clock)
    await forget(store, -LOW)
    await store.tidy()
    assert (await ranks(store))[LAST] < -LOW
    assert ids(await claim_limited(store, 1)) == [wanted]


async def test_runs_that_come_at_once_under_a_new_limit_tell_it_the_higher_priority(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of them sees the row that the other one makes."""
    resting = Resting("make_limits", monkeypatch)
    first = asyncio.create_task(postgres_store.enqueue([under("last", priority=LOW)]))
    await resting.came.wait()
    other = asyncio.create_task(postgres_store.enqueue([under("last", priority=HIGH)]))
    await until_blocked(postgres_store.database)
    resting.go.set()
    await asyncio.gather(first, other)
    assert await ranks(postgres_store) == {LAST: -HIGH}


async def test_runs_that_are_due_at_once_tell_the_limit_that_is_made_again(
    postgres_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody used it for a while, so it was dropped."""
    store = postgres_store
    await store.enqueue([under("last", priority=LOW, delay="1m")])
    await store.enqueue([under("last", priority=HIGH, delay="2m")])
    await store.database.transact(lambda tx: tx.fetch_sql("delete from rota_limit"))
    clock.advance(timedelta(minutes=3))
    resting = Resting("make_limits_of", monkeypatch)
    first = asyncio.create_task(store.promote(1))
    await resting.came.wait()
    other = asyncio.create_task(store.promote(1))
    await until_blocked(store.database)
    resting.go.set()
    await asyncio.gather(first, other)
    assert await ranks(store) == {LAST: -HIGH}


@pytest.mark.parametrize("keys", [KEYS, 4 * COMPARED])
async def test_runs_for_others_do_not_hide_the_highest_priority(store: Store, clock: ManualClock, keys: int) -> None:
    """Their limits know of a priority that nobody has who serves this queue."""
    clock.advance(timedelta(milliseconds=1))
    names = [
        ("Ab"[key % 2] + str(key)) for key in range(keys)
    ]  # some databases order these as Python does, some do not
    await store.enqueue([under(name, priority=2 * HIGH, queue="elsewhere") for name in names])
    await store.enqueue([under(name, priority=LOW) for name in names])
    clock.advance(SECOND)
    wanted = await enqueued(store, clock)
    equal = (await store.enqueue([under("other", priority=LOW)]))[0].id
    assert ids(await claim_limited(store, 1)) == [wanted]
    await store.database.transact(lambda tx: tx.fetch_sql(_SERVED_FIRST, key=under("other").gates[0].key))
    assert ids(await claim_limited(store, 1)) == [equal], "keys take turns"


async def test_what_was_cancelled_keeps_no_place_for_its_key(store: Store, clock: ManualClock) -> None:
    """Their limits know of a higher priority than any run under them has now."""
    gone = await crowd(store, clock, HIGH + 10)
    await serve(store, clock, "last")
    await crowd(store, clock)
    wanted = await enqueued(store, clock)
    for run_id in gone:
        await store.cancel(run_id, None, None)
    assert ids(await claim_limited(store, 1)) == [wanted]
    seen = await ranks(store)
    assert sum(rank == -LOW for rank in seen.values()) >= COMPARED
    assert seen[LAST] == -HIGH
