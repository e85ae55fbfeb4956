"""Instants as a test writes them: a datetime, or a text with the wall time of a zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from rota.core.calendar.zones import DAY, zone
from rota.errors import Invalid
from rota.values.instants import instant, micros_at

Moment = datetime | str
"""`datetime(…, tzinfo=…)`, `"2030-03-31T01:59Z"`, `"2030-03-31 01:59"` with a zone, or a date alone: its midnight."""

_MICROS = 1_000_000
_HINT = 'as in "2030-03-31 01:59", "2030-03-31", "2030-03-31T01:59+01:00", or a datetime with a zone'


class NoSuchTime(Invalid):
    """The wall time does not exist: the clocks are put forward over it."""

    def __init__(self, text: str, tz: str) -> None:
        super().__init__(f"there is no {text} in {tz}", hint="the clocks are put forward over it")


def moment(at: Moment, tz: str = "UTC") -> int:
    """Return the instant in microseconds.

    A text without an offset is wall time in `tz`; of two such, the first counts.
    """
    if isinstance(at, str):
        at = _read(at)
    elif not isinstance(at, datetime) or at.tzinfo is None:
        raise Invalid(f"{at!r:.80} is not an instant", hint=_HINT)
    return micros_at(at) if at.tzinfo is not None else _in_zone(at, tz)


def local(micros: int, tz: str) -> datetime:
    """Return the wall time in `tz`, with its offset."""
    shift = timezone(timedelta(seconds=zone(tz).offset(micros // _MICROS)))
    return instant(micros).astimezone(shift)


def shown(micros: int, tz: str) -> str:
    at = local(micros, tz)
    return at.isoformat(" ", "seconds" if at.microsecond == 0 else "microseconds")


def _read(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not an instant", hint=_HINT) from None


def _in_zone(wall: datetime, tz: str) -> int:
    there = zone(tz)
    shown_at = micros_at(wall.replace(tzinfo=UTC))
    second = shown_at // _MICROS
    offsets = {there.offset(second - DAY), there.offset(second + DAY)}
    fitting = [second - offset for offset in offsets if there.offset(second - offset) == offset]
    if not fitting:
        raise NoSuchTime(f"{wall:%Y-%m-%d %H:%M:%S}", tz)
    return min(fitting) * _MICROS + shown_at % _MICROS
