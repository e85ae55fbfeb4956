"""Durations as people write them (`"90s"`, `"15m"`, `"1h30m"`); `timedelta` inside."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.errors import BadDuration

Duration = str | timedelta

_MICROSECONDS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_PART = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_LONGEST = timedelta(days=36_500)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def parse_duration(value: Duration, what: str | None = None) -> timedelta:
    """Parse a duration. A bare number is refused: nobody remembers whether it meant seconds or milliseconds.

    `what` is the key that the value belongs to; the error message begins with it.
    """
    if isinstance(value, timedelta):
        span = value
    elif isinstance(value, str) and _WHOLE.fullmatch(value.strip().lower()):
        parts = _PART.findall(value.strip().lower())
        total = sum(float(number) * _MICROSECONDS[unit] for number, unit in parts)
        if total > _LONGEST / timedelta(microseconds=1):
            raise BadDuration(value, "is longer than a hundred years", what=what)
        span = timedelta(microseconds=round(total))
    else:
        raise BadDuration(value, what=what)
    if span < timedelta(0):
        raise BadDuration(value, "is negative", what=what)
    if span > _LONGEST:
        raise BadDuration(value, "is longer than a hundred years", what=what)
    return span


def format_duration(span: timedelta) -> str:
    """Return the shortest text that `parse_duration` reads back as the same span."""
    micros = in_micros(span)
    if micros == 0:
        return "0s"
    out = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, micros = divmod(micros, _MICROSECONDS[unit])
        if count:
            out += f"{count}{unit}"
    return f"{out}{micros / 1_000:g}ms" if micros else out


def in_micros(span: timedelta) -> int:
    return span // _MICROSECOND


def age(at: datetime, now: datetime) -> str:
    """Describe the distance between two instants in one unit, for people: `5s ago`, `in 3h`."""
    seconds = int(abs(now - at).total_seconds())
    if seconds == 0:
        return "now"
    size, unit = next(unit for unit in _UNITS if seconds >= unit[0])
    return f"{seconds // size}{unit} ago" if at < now else f"in {seconds // size}{unit}"


def span(length: timedelta) -> str:
    """Describe a length in at most two units, for people: `340ms`, `1.2s`, `3m12s`, `2h5m`, `1h`."""
    seconds = length.total_seconds()
    if seconds < 0.9995:
        return f"{max(0, round(seconds * 1000))}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s".replace(".0s", "s")
    whole = round(seconds)
    size, unit = next(unit for unit in _UNITS if whole >= unit[0])
    smaller, smaller_unit = _UNITS[_UNITS.index((size, unit)) + 1]
    rest = whole % size // smaller
    return f"{whole // size}{unit}{rest}{smaller_unit}" if rest else f"{whole // size}{unit}"


def worded(value: object) -> Any:
    """Convert to plain JSON values, with `"90s"` for a timedelta where msgspec alone would write `"PT90S"`."""
    return _with_words(msgspec.to_builtins(value, builtin_types=(timedelta,)))


def _with_words(value: Any) -> Any:
    match value:
        case timedelta():
            return format_duration(value)
        case dict():
            return {name: _with_words(item) for name, item in value.items()}
        case list() | tuple():
            return [_with_words(item) for item in value]
        case _:
            return value
