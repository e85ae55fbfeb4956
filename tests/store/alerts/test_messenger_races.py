"""Races of messengers, ends and people, in a forced order: nothing is decided twice, nothing is lost."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from rota.core.alerts.notifications import notification_of
from rota.core.calendar.triggers import following
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import RetryPolicy
from rota.core.runs.run import RunFilter
from rota.errors import FollowingRing, Unavailable
from rota.store import Store, new_id
from rota.store.alerts.signals import Undeliverable
from rota.store.databases.database import Tx
from rota.store.schedules import change as schedule_changes
from tests.support.clock import ManualClock
from tests.support.dying import Deaths, Died, Moment
from tests.support.runs import claim, finish, finish_all, put, until
from tests.support.schedules import definition_of, edit, make_schedule, noon, runs_of

EXTRACT = JobDefinition(name="extract", retry=RetryPolicy(1))
WORK = JobDefinition(name="work")


@pytest.fixture
def clock() -> ManualClock:
    return noon()


class Held:
    """A transaction that has done its work, and commits on request."""

    def __init__(self, store: Store, work: Callable[[Tx], Awaitable[Any]]) -> None:
        self._done, self._go = asyncio.Event(), asyncio.Event()
        self._work = work
        self._task = asyncio.create_task(store.database.transact(self._body))

    async def _body(self, tx: Tx) -> Any:
        answer = await self._work(tx)
        self._done.set()
        await self._go.wait()
        return answer

    async def ready(self) -> None:
        await self._done.wait()

    async def commit(self) -> Any:
        self._go.set()
        return await self._task


async def end(store: Store) -> str:
    run_id = await put(store, EXTRACT)
    (held,) = await claim(store, known={"extract": 1})
    await finish(store, held)
    return run_id


async def blocked(store: Store) -> None:
    """Wait until a transaction waits for a lock."""
    sql = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"

    async def body(tx: Tx) -> int:
        ((count,),) = await tx.fetch_sql(sql)
        return int(count)

    async with asyncio.timeout(20):
        while not await store.database.read(body):
            await asyncio.sleep(0.01)


async def test_what_one_messenger_has_another_leaves_alone(postgres_store: Store) -> None:
    store = postgres_store
    await store.save_jobs([EXTRACT])
    await make_schedule(store, "s", following("extract"))
    await end(store)
    held = Held(store, lambda tx: tx.fetch("take_signals", [], limit=10))
    await held.ready()
    assert (await store.signals.deliver(10)).signals == 0
    await end(store)
    assert (await store.signals.deliver(10)).signals == 1  # the next one is nobody's yet
    await held.commit()
    assert (await store.signals.deliver(10)).signals == 1
    assert len(await runs_of(store)) == 2


async def test_a_ring_that_two_close_in_turn(postgres_store: Store) -> None:
    store = postgres_store
    await store.save_jobs([EXTRACT, WORK])
    one = await definition_of(store, following("extract"), WORK, "one")
    two = await definition_of(store, following("work"), EXTRACT, "two")

    async def create(tx: Tx) -> None:
        await schedule_changes.create(tx, new_id(), "one", one, "test", declared=None, actor=None)

    held = Held(store, create)
    await held.ready()
    late = asyncio.create_task(store.schedules.create("two", two, "test"))
    await blocked(store)
    await held.commit()
    with pytest.raises(FollowingRing, match="work → extract → work"):
        await late


async def test_a_schedule_deleted_while_it_is_about_to_fire(postgres_store: Store) -> None:
    store = postgres_store
    await store.save_jobs([EXTRACT])
    await make_schedule(store, "s", following("extract"))
    await end(store)

    async def delete(tx: Tx) -> None:
        await schedule_changes.delete(tx, await schedule_changes.locked(tx, "s"), new_id, None)

    held = Held(store, delete)
    await held.ready()
    firing = asyncio.create_task(store.signals.deliver(10))
    await blocked(store)
    await held.commit()
    assert (await firing).signals == 1
    assert await runs_of(store) == []


@pytest.mark.parametrize("seed", range(4))
async def test_everything_at_once(store: Store, second: Store, clock: ManualClock, seed: int) -> None:
    """Ends, messengers, workers and edits: each end that was followed got one run, and all of them end."""
    chance = random.Random(seed)
    await store.save_jobs([EXTRACT])
    overlap = chance.choice(["queue_all", "allow", "skip"])
    await make_schedule(store, "s", following("extract"), overlap=overlap)
    ended: list[str] = []

    async def some_end(by: Store) -> None:
        ended.extend([await put(by, EXTRACT) for _ in range(3)])
        await finish_all(by, await claim(by, 2, known={"extract": 1}, worker=f"{id(by)}"))

    async def work(by: Store) -> None:
        await finish_all(by, await claim(by, 2, worker=f"{id(by)}"))

    async def change(by: Store) -> None:
        await edit(by, "s", following("extract"), overlap=overlap, priority=chance.randint(0, 9))

    for _ in range(8):
        acts = [some_end(store), some_end(second), work(store), work(second), change(second)]
        acts += [one.signals.deliver(chance.randint(1, 4)) for one in (store, second, store)]  # type: ignore[misc]
        chance.shuffle(acts)
        await asyncio.gather(*acts)
    while left := await claim(store, known={"extract": 1}):
        await finish_all(store, left)
    while (await store.signals.deliver(100)).signals:
        pass
    while left := await claim(store):
        await finish_all(store, left)
    runs = await runs_of(store)
    assert sorted(run.metadata["triggered_by"]["run_id"] for run in runs) == sorted(ended)
    assert all(run.state.is_final for run in runs)


async def all_delivered(store: Store) -> bool:
    await store.signals.deliver(100)
    return not (await store.signals.look()).signals


@pytest.mark.parametrize("moment", ["before", "after", "unanswered"])
async def test_a_death_at_every_statement(store: Store, second: Store, moment: Moment) -> None:
    """Wherever a messenger dies, another one finds each signal, once."""
    await store.save_jobs([EXTRACT])
    await make_schedule(store, "s", following("extract"), overlap="queue_all")
    made = notification_of({"on": ["success"], "to": "https://example.com", "jobs": ["extract"]})
    await store.notifications.save("ops", made, "api", None, new=True)
    deaths, number, ended = Deaths(second), 0, 0
    while True:
        await end(store)
        ended += 1
        deaths.at(number, moment)
        with suppress(Died, Unavailable, Undeliverable):
            await second.signals.deliver(100)
        await until(lambda: all_delivered(store))  # the dead one's locks may be there for a moment
        sent = await store.list_runs(RunFilter(queue="rota"), 500)
        assert (len(await runs_of(store)), len(sent)) == (ended, ended)
        if not deaths.died:
            break
        number += 1
    assert number > (10 if moment != "unanswered" else 0)
