"""Ids of runs sort by the database's clock, whichever host makes them."""

from uuid import UUID

import pytest
import uuid_utils

from rota.store import Store, open_database
from rota.values import clock
from rota.values.clock import HostClock, compare, id_clock
from tests.support.runs.runs import put

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def time_of(id: str) -> int:
    return UUID(id).int >> 80


class HostClocks:
    """Makes ids as hosts do whose clocks are wrong by `ahead` milliseconds."""

    def __init__(self) -> None:
        self.ahead = 0

    UUID = uuid_utils.UUID

    def uuid7(self) -> uuid_utils.UUID:
        return uuid_utils.UUID(int=uuid_utils.uuid7().int + (self.ahead << 80))


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> HostClocks:
    hosts = HostClocks()
    monkeypatch.setattr(clock, "uuid_utils", hosts)
    return hosts


async def test_ids_tell_the_time_of_the_database_on_any_host(new_postgres_url: str, hosts: HostClocks) -> None:
    for ahead in (0, 2 * HOUR_MS, -2 * HOUR_MS):
        hosts.ahead = ahead
        store = Store(open_database(new_postgres_url))
        await store.migrate()  # it has compared the clocks when it connected
        ids = [await put(store, id=store.new_id()) for _ in range(3)]
        hosts.ahead = -ahead  # it jumps, and is noticed by whoever asks for the time
        now = await store.now()
        jumped = [await put(store, id=store.new_id()) for _ in range(3)]
        assert all(abs(time_of(id) - now // 1_000) < MINUTE_MS for id in (*ids, *jumped))
        await store.close()


async def test_a_clock_that_is_about_right_is_taken_as_it_is(new_postgres_url: str, hosts: HostClocks) -> None:
    store = Store(open_database(new_postgres_url))
    await store.now()
    assert isinstance(store.clock, HostClock)
    for micros in (20_000, -20_000, 45_000):
        compare(store.clock, id_clock(), id_clock() * 1_000 + micros)
        assert store.clock.ahead_ms == 0
    store.clock.ahead_ms = HOUR_MS
    compare(store.clock, id_clock() - 2_000, (id_clock() - HOUR_MS) * 1_000)
    assert store.clock.ahead_ms == HOUR_MS, "a slow answer says nothing new"
    compare(store.clock, id_clock(), id_clock() * 1_000)
    assert store.clock.ahead_ms == 0
    compare(store.clock, id_clock() + HOUR_MS, id_clock() * 1_000)
    assert store.clock.ahead_ms == 0, "a clock that was set back meanwhile has measured nothing"
    await store.close()


async def test_on_sqlite_the_host_is_the_clock(sqlite_url: str, hosts: HostClocks) -> None:
    store = Store(open_database(sqlite_url))
    await store.migrate()
    first = await put(store, id=store.new_id())
    await store.now()
    assert first < await put(store, id=store.new_id())
    await store.close()
