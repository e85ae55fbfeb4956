"""Phrases of plain English that descriptions of rules share: lists, durations and instants."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from rota.values.instants import instant

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def listed(words: Iterable[str]) -> str:
    """Join words: `a`, `a and b`, `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def duration_phrase(duration: timedelta, one: str) -> str:
    """Return `30 minutes`, `1 hour 30 minutes`, `24 hours`; `one` stands before a single unit, as in `1 hour`."""
    rest = duration.days * 86_400 + duration.seconds
    if rest == 86_400:
        return "24 hours"  # "every day" would be a time of the clock
    parts = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append((count, unit))
    if len(parts) == 1 and parts[0][0] == 1:
        return one + parts[0][1]
    return " ".join(f"{count} {unit}" if count == 1 else f"{count} {unit}s" for count, unit in parts)


def instant_phrase(at: int) -> str:
    """Write `at`, microseconds since the epoch, as `2026-01-01 09:00:00 UTC`."""
    moment = instant(at)
    return f"{moment:%Y-%m-%d %H:%M:%S}{f'.{moment:%f}'.rstrip('0') if moment.microsecond else ''} UTC"
