"""Execution windows and excluded dates, and the instants that they leave in one zone."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from datetime import date

import msgspec

from rota.core.calendar.zones import DAY, FIRST_YEAR, LAST_SECOND, LAST_YEAR, zone
from rota.errors import BadTrigger, did_you_mean

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEK = 7 * DAY
_MONDAY = 3 * DAY  # 1970-01-01 was a Thursday
_FAR = 2 * DAY  # more than two offsets can differ by
_EPOCH = date(1970, 1, 1).toordinal()
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOST_WINDOWS, _MOST_DATES = 100, 1_000

_WRITTEN = re.compile(r"([0-9:]{5,8})\s*-\s*([0-9:]{5,8})(?:\s+([a-z,-]+))?", re.ASCII)

Interval = tuple[int, int]


class Window(msgspec.Struct, frozen=True):
    """Wall times from `start` to just before `end`, on `days` (none: on all).

    If `end` is not after `start` it lasts over midnight, and belongs to the day it starts on.
    """

    start: str
    end: str
    days: tuple[str, ...] = ()


def window_of(value: Window | str | Mapping[str, object]) -> Window:
    """Parse `"09:00-17:00"`, `"22:00-06:00 mon-fri"`, `"09:00-12:00 sat,sun"`, or the fields in JSON."""
    if isinstance(value, Window):
        window = value
    elif isinstance(value, str):
        shape = _WRITTEN.fullmatch(value[:60].strip().lower())
        if shape is None:
            raise BadTrigger(f"{ascii(value)[:60]} is no window", field="windows", hint='as in "09:00-17:00 mon-fri"')
        window = Window(shape[1], shape[2], _weekdays(shape[3]) if shape[3] else ())
    else:
        try:
            window = msgspec.convert(value, Window)
        except msgspec.ValidationError as failure:
            raise BadTrigger(f"{failure}", field="windows", hint='as in "09:00-17:00 mon-fri"') from None
    _week_parts(window)
    return window


class Allowed:
    """Instants, in seconds since the epoch, whose wall time is in a window and on no excluded date."""

    def __init__(self, windows: tuple[Window, ...], exclude: tuple[str, ...], timezone: str) -> None:
        if len(windows) > _MOST_WINDOWS:
            raise BadTrigger(f"there are more than {_MOST_WINDOWS}", field="windows")
        if len(exclude) > _MOST_DATES:
            raise BadTrigger(f"there are more than {_MOST_DATES}", field="exclude", hint="join days to a range")
        self._zone = zone(timezone)
        self._week = _merged(part for window in windows for part in _week_parts(window)) if windows else [(0, _WEEK)]
        self._opens = [start for start, _ in self._week]
        self._excluded = _merged(_days(text) for text in exclude)
        self._excluded_from = [first for first, _ in self._excluded]
        self._day_bits: dict[int, int] = {}

    def allows(self, at: int) -> bool:
        wall = at + self._zone.offset(at)
        return self._next_wall(wall) == wall

    def next(self, at: int) -> int | None:
        """Return the first allowed instant ≥ `at`."""
        at = max(at, 0)
        while at <= LAST_SECOND:
            piece = self._zone.piece(at)
            wall = self._next_wall(at + piece.offset)
            if wall < piece.end + piece.offset:
                return wall - piece.offset
            near = piece.end - at < _FAR  # to a change, behind which wall times may repeat
            at = piece.end if near else max(piece.end, wall - _FAR)
        return None

    def prev(self, at: int) -> int | None:
        """Return the last allowed instant ≤ `at`."""
        at = min(at, LAST_SECOND)
        while at >= 0:
            piece = self._zone.piece(at)
            wall = self._prev_wall(at + piece.offset)
            if wall >= piece.start + piece.offset:
                return wall - piece.offset
            near = at - piece.start < _FAR
            at = piece.start - 1 if near else min(piece.start - 1, wall + _FAR)
        return None

    def bits(self, day: int) -> int:
        """Return a bit set: bit n is set if second n of the UTC day is allowed."""
        first, allowed = day * DAY, 0
        at = first
        while at < first + DAY:
            piece = self._zone.piece(at)
            end = min(piece.end, first + DAY)
            allowed |= self._wall_bits(at + piece.offset, end + piece.offset) << at - first
            at = max(end, at + 1)
        return allowed

    def _wall_bits(self, start: int, end: int) -> int:
        allowed = 0
        for day in range(start // DAY, (end - 1) // DAY + 1):
            if not self._is_excluded(day):
                shift = day * DAY - start
                bits = self._weekday_bits((day + 3) % 7)
                allowed |= bits << shift if shift >= 0 else bits >> -shift
        return allowed & (1 << end - start) - 1

    def _weekday_bits(self, weekday: int) -> int:
        bits = self._day_bits.get(weekday)
        if bits is None:
            bits, low = 0, weekday * DAY
            for start, end in self._week:
                first, last = max(start - low, 0), min(end - low, DAY)
                if first < last:
                    bits |= (1 << last) - (1 << first)
            self._day_bits[weekday] = bits
        return bits

    def _is_excluded(self, day: int) -> bool:
        place = bisect_right(self._excluded_from, day) - 1
        return place >= 0 and day < self._excluded[place][1]

    def _next_wall(self, wall: int) -> int:
        """Return the first wall time ≥ `wall` that is allowed."""
        while True:
            wall = self._next_open(wall)
            place = bisect_right(self._excluded_from, wall // DAY) - 1
            if place < 0 or wall // DAY >= self._excluded[place][1]:
                return wall
            wall = self._excluded[place][1] * DAY

    def _next_open(self, wall: int) -> int:
        within = (wall + _MONDAY) % _WEEK
        place = bisect_right(self._opens, within) - 1
        if place >= 0 and within < self._week[place][1]:
            return wall
        later = self._opens[place + 1] if place + 1 < len(self._opens) else self._opens[0] + _WEEK
        return wall - within + later

    def _prev_wall(self, wall: int) -> int:
        """Return the last wall time ≤ `wall` that is allowed."""
        while True:
            wall = self._prev_open(wall)
            place = bisect_right(self._excluded_from, wall // DAY) - 1
            if place < 0 or wall // DAY >= self._excluded[place][1]:
                return wall
            wall = self._excluded[place][0] * DAY - 1

    def _prev_open(self, wall: int) -> int:
        within = (wall + _MONDAY) % _WEEK
        place = bisect_right(self._opens, within) - 1
        if place < 0:
            return wall - within - _WEEK + self._week[-1][1] - 1
        return wall - within + min(within, self._week[place][1] - 1)


def _week_parts(window: Window) -> list[Interval]:
    """Return the parts of a window as seconds since Monday."""
    start = _seconds(window.start, "start of a window")
    end = DAY if window.end == "24:00" else _seconds(window.end, "end of a window")
    length = end - start if end > start else end - start + DAY
    parts = []
    for day in window.days or WEEKDAYS:
        if day not in WEEKDAYS:
            raise BadTrigger(f"no day is called {repr(day)[:40]}", field="windows", hint=_day_hint(day))
        first = WEEKDAYS.index(day) * DAY + start
        parts.append((first, min(first + length, _WEEK)))
        if first + length > _WEEK:
            parts.append((0, first + length - _WEEK))
    return parts


def _weekdays(text: str) -> tuple[str, ...]:
    """Parse `mon-fri`, `sat,sun` or `fri-mon`."""
    days = []
    for item in text.split(","):
        first, dash, last = item.partition("-")
        for day in (first, last) if dash else (first,):
            if day not in WEEKDAYS:
                raise BadTrigger(f"no day is called {day!a}", field="windows", hint=_day_hint(day))
        low, high = WEEKDAYS.index(first), WEEKDAYS.index(last if dash else first)
        days += [WEEKDAYS[place % 7] for place in range(low, high + (7 if high < low else 0) + 1)]
    return tuple(dict.fromkeys(days))


def _seconds(text: str, role: str) -> int:
    shape = _TIME.fullmatch(text) if isinstance(text, str) else None
    if shape is None:
        raise BadTrigger(f"{repr(text)[:40]} cannot be the {role}", field="windows", hint='as in "09:00" or "17:30:15"')
    return int(shape[1]) * 3_600 + int(shape[2]) * 60 + int(shape[3] or 0)


def _day_hint(day: object) -> str:
    return did_you_mean(day[:20], WEEKDAYS) or "mon to sun" if isinstance(day, str) else "mon to sun"


def _days(text: str) -> Interval:
    """Parse `2026-12-25`, or `2026-12-24/2026-12-31` with both ends, into days since the epoch."""
    first, _, last = text[:40].partition("/") if isinstance(text, str) else ("", "", "")
    start, end = _day(first, text), _day(last, text) if "/" in text else _day(first, text)
    if end < start:
        raise BadTrigger(f"{text!a} ends before it starts", field="exclude")
    return start, end + 1


def _day(word: str, text: object) -> int:
    try:
        day = date.fromisoformat(word) if _DATE.fullmatch(word) else None
    except ValueError:
        day = None
    if day is None or not FIRST_YEAR <= day.year <= LAST_YEAR:
        hint = 'as in "2026-12-25" or "2026-12-24/2026-12-31"'
        raise BadTrigger(f"{ascii(text)[:60]} is no date", field="exclude", hint=hint)
    return day.toordinal() - _EPOCH


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
