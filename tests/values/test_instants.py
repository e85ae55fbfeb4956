"""Instants as the tables keep them."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from rota.values.instants import instant, micros_at


@given(st.datetimes(timezones=st.just(UTC)))
def test_nothing_is_lost(at: datetime) -> None:
    assert instant(micros_at(at)) == at


def test_every_zone_becomes_utc() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert instant(micros_at(noon)).isoformat() == "2026-01-01T06:30:00+00:00"


def test_the_epoch() -> None:
    assert instant(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert micros_at(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)) == -1_000_000
