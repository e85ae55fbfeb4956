"""On SQLite, the cursors of schedules that fire together are moved together, and then stay where they are."""

import pytest

from rota.store import Store
from rota.store.databases.database import Row
from rota.store.databases.sqlite import sqlite_hot
from rota.store.databases.sqlite.sqlite_hot import are_scattered
from tests.support.clock import ManualClock
from tests.support.schedules.ledger_oracle import check_account, each, rows
from tests.support.schedules.schedules import get_schedule, make_schedule, minutes, noon, plan

PLACES = (
    "select c.rowid from rota_cursor c join rota_schedule s on s.cursor_no = c.no where s.name like 's%' order by no"
)
OTHERS = "select c.rowid, c.* from rota_cursor c join rota_schedule s on s.cursor_no = c.no where s.name like 'o%'"


@pytest.fixture
def clock() -> ManualClock:
    return noon()


@pytest.mark.parametrize(
    ("places", "scattered"),
    [
        (range(1, 301), False),
        (range(1, 3001, 10), False),
        (range(1, 30_001, 100), True),
        (range(300, 0, -1), False),
        ([one for pair in zip(range(1, 201), range(9_001, 9_201), strict=True) for one in pair], False),
        ([*range(1, 251), *range(10_000, 60_000, 1_000)], False),
        (range(1, 19_901, 100), False),
    ],
    ids=["side by side", "nearby", "far", "backwards", "two groups in turn", "mostly side by side", "few"],
)
def test_when_they_are_scattered(places: list[int], scattered: bool) -> None:
    assert are_scattered(list(places)) is scattered


async def test_those_that_fire_together_lie_together_from_then_on(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sqlite_store
    monkeypatch.setattr(sqlite_hot, "_MANY", 4)
    monkeypatch.setattr(sqlite_hot, "_NEAR", 2)
    began = clock.micros()
    for number in range(5):
        await make_schedule(store, f"s{number}", overlap="allow")
        await make_schedule(store, f"o{number}", overlap="allow", delay="10h")
    others = await rows(store, OTHERS)
    assert await _places(store) == [1, 3, 5, 7, 9]
    for _ in range(3):
        clock.advance(minutes(1))
        assert await plan(store) == 5
        assert await _places(store) == [11, 12, 13, 14, 15]
    assert await rows(store, OTHERS) == others, "the others are where they were"
    for number in range(5):
        schedule = await get_schedule(store, f"s{number}")
        assert schedule.fired == 3
        await check_account(store, schedule.id, each(minutes(1), began, clock.micros()))
    await store.schedules.delete("s4", None)
    await make_schedule(store, "s5")
    assert len(set(await rows(store, "select no from rota_cursor"))) == 11, "a number is nobody else's"


async def _places(store: Store) -> list[int]:
    found: list[Row] = await rows(store, PLACES)
    return [row[0] for row in found]


async def test_a_number_that_is_left_to_the_database_is_one(sqlite_store: Store) -> None:
    """As an older program makes a cursor."""
    sql = "insert into rota_cursor (cursor_at, tzdata) values (1, '2026a') returning no"
    numbers = [(await sqlite_store.database.transact(lambda tx: tx.fetch_sql(sql)))[0][0] for _ in range(3)]
    assert len(set(numbers)) == 3
    await make_schedule(sqlite_store)
    assert len(await rows(sqlite_store, "select no from rota_cursor")) == 4
