"""Test the manual clock."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.errors import BadDuration
from rota.store import Store, open_database
from rota.testing import ManualClock

DAY = timedelta(days=1)


def test_it_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(datetime(2024, 2, 29, tzinfo=UTC))
    assert clock.now() == datetime(2024, 2, 29, tzinfo=UTC)
    clock.advance("1d")
    assert clock.now() == datetime(2024, 3, 1, tzinfo=UTC)
    assert clock.monotonic() == 86_400
    clock.advance(DAY)
    assert clock.now() == datetime(2024, 3, 2, tzinfo=UTC)


def test_time_never_passes_backwards() -> None:
    with pytest.raises(BadDuration):
        ManualClock().advance(-DAY)


def test_a_clock_that_is_set_lets_no_time_pass() -> None:
    clock = ManualClock(datetime(2024, 1, 2, tzinfo=UTC))
    clock.jump(-DAY)
    assert clock.now() == datetime(2024, 1, 1, tzinfo=UTC)
    assert clock.monotonic() == 0


async def test_the_databases_use_it(database_url: str) -> None:
    clock = ManualClock(datetime(1999, 12, 31, tzinfo=UTC))
    store = Store(open_database(database_url, clock))
    await store.migrate()
    clock.advance("1d")
    assert await store.now() == clock.micros()
    await store.close()
