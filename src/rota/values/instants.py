"""Instants: microseconds since the epoch in tables, aware UTC datetimes for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.errors import Invalid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant(micros: int) -> datetime:
    return _EPOCH + micros * _MICROSECOND


def maybe_instant(micros: int | None) -> datetime | None:
    return None if micros is None else instant(micros)


def micros_at(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def zoned(at: datetime, name: str) -> datetime:
    """Return the time, or raise `Invalid` if it has no zone. `name` is the parameter."""
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise Invalid(f"{name} must be a datetime with a zone, not {at!r:.80}", hint="datetime.now(UTC)")
    return at
