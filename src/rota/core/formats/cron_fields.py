"""Fields of cron expressions of other schedulers, written as rota reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rota.core.calendar.cron_parser import DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, Kind

_RANGE = re.compile(r"([a-z0-9]+)-([a-z0-9]+)")
_WORD = re.compile(r"[a-z]{4,}")


def field(kind: Kind, value: object) -> str:
    """Write a field that is text, a number, or several numbers. A range that wraps (fri-mon) becomes two."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(str(item) for item in value)
    text = _WORD.sub(lambda word: word[0][:3], str(value).strip().lower().replace(" ", ""))
    return ",".join(_unrolled(kind, item) for item in text.split(","))


def _unrolled(kind: Kind, item: str) -> str:
    shape = _RANGE.fullmatch(item)
    low, high = (None, None) if shape is None else map(kind.number_of, shape.groups())
    if low is None or high is None or low <= high or (kind is DAY_OF_WEEK and high == 0):
        return f"{low}-7" if kind is DAY_OF_WEEK and low and high == 0 else item
    return f"{low}-{6 if kind is DAY_OF_WEEK else kind.high},{kind.low}-{high}"


def both_days(day_of_month: str, day_of_week: str) -> str:
    """Write a day of week that must hold together with the day of month, where cron takes either."""
    restricted = not (day_of_month.startswith("*") or day_of_week.startswith("*"))
    return f"+{day_of_week}" if restricted else day_of_week


def five_fields(minute: object, hour: object, day_of_month: object, month: object, day_of_week: object) -> str:
    """Write a cron expression whose days must both hold."""
    day, weekday = field(DAY_OF_MONTH, day_of_month), field(DAY_OF_WEEK, day_of_week)
    return f"{field(MINUTE, minute)} {field(HOUR, hour)} {day} {field(MONTH, month)} {both_days(day, weekday)}"
