"""New time zone data while schedules are changed: a pause stays one, and what is deleted stays deleted."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from rota.core.calendar import zones
from rota.core.calendar.triggers import cron
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.planning import due
from rota.store.planning import plan as plans
from rota.store.schedules import change as schedule_changes
from rota.store.schedules.schedule_row import ScheduleRow
from tests.support.clock import ManualClock
from tests.support.schedules.schedules import DAY, get_schedule, make_schedule, minutes, noon, plan, runs_of
from tests.support.wait import until

Change = Callable[[Tx, ScheduleRow], Awaitable[None]]


@pytest.fixture
def clock() -> ManualClock:
    return noon()


@pytest.fixture
def newer_zones(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def come() -> None:
        for module in (zones, plans, due, schedule_changes):
            monkeypatch.setattr(module, "TZDATA_VERSION", "2999z")

    return come


async def make_hourly(store: Store, name: str = "s") -> None:
    await make_schedule(store, name, cron("0 * * * *", "Europe/Berlin"), overlap="allow", catch_up="all")


async def due_at(store: Store) -> list[int | None]:
    sql = "select next_at from rota_cursor order by no"
    return [row[0] for row in await store.database.read(lambda tx: tx.fetch_sql(sql))]


async def while_it_changes(store: Store, change: Change) -> None:
    """The look at zones comes while somebody changes the schedule, and waits until that is committed."""
    changed, go = asyncio.Event(), asyncio.Event()

    async def body(tx: Tx) -> None:
        await change(tx, await schedule_changes.locked(tx, "s"))
        changed.set()
        await go.wait()

    async def waits() -> bool:
        sql = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        return bool(await store.database.read(lambda tx: tx.fetch_sql(sql)))

    changing = asyncio.create_task(store.database.transact(body))
    await changed.wait()
    looking = asyncio.create_task(store.planning.replan_zones())
    await until(waits)
    go.set()
    await asyncio.gather(changing, looking)


async def test_a_schedule_deleted_meanwhile_does_not_go_on(
    postgres_store: Store, clock: ManualClock, newer_zones: Callable[[], None]
) -> None:
    store = postgres_store
    await make_hourly(store)
    newer_zones()
    await while_it_changes(store, lambda tx, row: schedule_changes.delete(tx, row, store.new_id, None))
    assert await due_at(store) == [None]
    clock.advance(minutes(180))
    assert await plan(store) == 0


async def test_a_schedule_paused_meanwhile_stays_paused(
    postgres_store: Store, clock: ManualClock, newer_zones: Callable[[], None]
) -> None:
    store, end = postgres_store, clock.micros() + DAY
    await make_hourly(store)
    newer_zones()
    await while_it_changes(
        store, lambda tx, row: schedule_changes.pause(tx, row, store.new_id, reason=None, actor=None, until=end)
    )
    assert await due_at(store) == [end]
    clock.advance(minutes(180))
    assert await plan(store) == 0
    assert (await get_schedule(store)).state == "paused"
    clock.advance(timedelta(days=1))
    await plan(store)
    assert (await get_schedule(store)).state == "active"


async def test_all_of_them_are_looked_at_though_there_are_many(
    store: Store, clock: ManualClock, newer_zones: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"s-{no}" for no in range(5)]
    for name in names:
        await make_hourly(store, name)
    await store.schedules.pause("s-3", None, None, clock.micros() + DAY)
    await store.schedules.delete("s-1", None)
    newer_zones()
    monkeypatch.setattr(due, "_BATCH", 2)
    assert await store.planning.replan_zones()
    now = clock.micros()
    assert await due_at(store) == [now, None, now, now + DAY, now]


async def test_a_deleted_schedule_that_is_due_all_the_same_is_not_planned(store: Store, clock: ManualClock) -> None:
    """As older programs left some: it is met once, and others are planned."""
    await make_hourly(store)
    await make_hourly(store, "other")
    await store.schedules.delete("s", None)
    await store.database.transact(lambda tx: tx.fetch_sql("update rota_cursor set next_at = 1 where next_at is null"))
    clock.advance(minutes(60))
    assert await plan(store, 1) == 0
    assert await plan(store, 1) == 1
    assert [len(await runs_of(store, name)) for name in ("s", "other")] == [0, 1]
    assert (await due_at(store))[0] is None


async def test_a_pause_that_is_due_before_its_end_goes_on(store: Store, clock: ManualClock) -> None:
    await make_hourly(store)
    end = clock.micros() + DAY
    await store.schedules.pause("s", None, None, end)
    await store.database.transact(lambda tx: tx.fetch_sql("update rota_cursor set next_at = 1"))
    assert await plan(store) == 0
    assert ((await get_schedule(store)).state, await due_at(store)) == ("paused", [end])
