"""Matching of wall times against a cron expression, without any zone: next, previous, counted, and as bits."""

from __future__ import annotations

from bisect import bisect_right
from datetime import date

import msgspec

from rota.core.calendar.cron_parser import DAY_OF_MONTH, DAY_OF_WEEK, MONTH_NAMES, YEAR, Expression, Field
from rota.errors import BadTrigger

DAY = 86_400
_FIRST, _LAST = 1969, 2400  # a zone's offset leads a day out of the years of plan times
_EPOCH = date(1970, 1, 1).toordinal()
_STARTS = [date(year, 1, 1).toordinal() - _EPOCH for year in range(_FIRST, _LAST + 2)]
_COMMON = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_WEEKS = sum(1 << 7 * week for week in range(6))


class CronMatcher:
    """Wall times of a cron expression, in seconds since the epoch as if the clocks showed UTC.

    A year is a bit set of its days (there are only 14 different years), a day one of its minutes, a minute one of its
    seconds.
    """

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._years = None if expression.year is None else expression.year.bits
        self._seconds = expression.second.bits
        self._minutes = sum(expression.minute.bits << 60 * hour for hour in expression.hour.values)
        self._first = _lowest(self._minutes) * 60 + _lowest(self._seconds)
        self._last = _highest(self._minutes) * 60 + _highest(self._seconds)
        self._per_minute = self._seconds.bit_count()
        self.per_day = self._minutes.bit_count() * self._per_minute
        self._kinds: dict[tuple[int, int], int] = {}
        # The year looked at last: its first day, that of the next year, and its days. Plan times come in order, so
        # that nearly every search is in this year.
        self._year = (0, 0, 0)
        self._day_bits: int | None = None

    def next(self, wall: int) -> int | None:
        """Return the first match after `wall`."""
        day, second = divmod(wall, DAY)
        start, end, days = self._year
        if not start <= day < end:
            start, end, days = self._select_year(day)
        ahead = days >> day - start
        if ahead & 1:
            minute, second = divmod(second, 60)
            minutes = self._minutes >> minute
            if minutes & 1 and (seconds := self._seconds >> second + 1):
                return wall + (seconds & -seconds).bit_length()
            if minutes := minutes >> 1:
                minute += (minutes & -minutes).bit_length()
                return day * DAY + minute * 60 + self._first % 60
            ahead -= 1
        while not ahead:
            if end >= _STARTS[-1]:
                return None
            day = end
            _, end, ahead = self._select_year(day)
        return (day + _lowest(ahead)) * DAY + self._first

    def prev(self, wall: int) -> int | None:
        """Return the last match before `wall`."""
        day, second = divmod(wall, DAY)
        start, end, days = self._year
        if not start <= day < end:
            start, end, days = self._select_year(day)
        behind = days & (2 << day - start) - 1
        if behind >> day - start:
            minute, second = divmod(second, 60)
            if self._minutes >> minute & 1 and (seconds := self._seconds & (1 << second) - 1):
                return wall - second + _highest(seconds)
            if minutes := self._minutes & (1 << minute) - 1:
                return day * DAY + _highest(minutes) * 60 + self._last % 60
            behind ^= 1 << day - start
        while not behind:
            if start <= _STARTS[0]:
                return None
            start, _, behind = self._select_year(start - 1)
        return (start + _highest(behind)) * DAY + self._last

    def count(self, start: int, end: int) -> int:
        """Count the matches in `start` ≤ wall < `end`."""
        return self._count_before(end) - self._count_before(start, end) if start < end else 0

    def bits(self, start: int, end: int) -> int:
        """Return a bit set: bit n is set if `start` + n matches."""
        matches = 0
        for day in range(start // DAY, (end - 1) // DAY + 1):
            if self._has_day(day):
                shift = day * DAY - start
                matches |= self._whole_day() << shift if shift >= 0 else self._whole_day() >> -shift
        return matches & (1 << end - start) - 1

    def _count_before(self, wall: int, other: int | None = None) -> int:
        """Count the matches of the year of `wall` before it, less those of the years from there to that of `other`."""
        day, second = divmod(wall, DAY)
        start, end, days = self._select_year(day)
        total = (days & (1 << day - start) - 1).bit_count() * self.per_day
        if days >> day - start & 1:
            minute, second = divmod(second, 60)
            total += (self._minutes & (1 << minute) - 1).bit_count() * self._per_minute
            if self._minutes >> minute & 1:
                total += (self._seconds & (1 << second) - 1).bit_count()
        last = start if other is None else self._select_year(other // DAY)[0]
        while start < last:
            total -= days.bit_count() * self.per_day
            start, end, days = self._select_year(end)
        return total

    def _has_day(self, day: int) -> int:
        start, end, days = self._year
        if not start <= day < end:
            start, end, days = self._select_year(day)
        return days >> day - start & 1

    def _select_year(self, day: int) -> tuple[int, int, int]:
        place = min(max(bisect_right(_STARTS, day), 1), len(_STARTS) - 1)
        start, end = _STARTS[place - 1], _STARTS[place]
        if self._years is not None and not self._years >> _FIRST + place - 1 & 1:
            days = 0
        else:
            days = self._days_of(_kind(start, end))
        self._year = year = (start, end, days)
        return year

    def _days_of(self, kind: tuple[int, int]) -> int:
        days = self._kinds.get(kind)
        if days is None:
            days = self._kinds[kind] = _days_of_year(self._expression, *kind)
        return days

    def _whole_day(self) -> int:
        if self._day_bits is None:
            minute = f"{self._seconds:060b}"
            self._day_bits = int("".join(minute if bit == "1" else "0" * 60 for bit in f"{self._minutes:b}"), 2)
        return self._day_bits


def require_days(expression: Expression) -> None:
    """Refuse an expression whose days come in none of its years, or of the 14 different ones."""
    if _has_days(expression):
        return
    day, weekday = expression.day.text.upper(), expression.weekday.text.upper()
    if expression.year is not None and _has_days(msgspec.structs.replace(expression, year=None)):
        raise BadTrigger(f"has none of these days: {expression.year.text}", field=YEAR.name, hint="leave it out")
    if _has_days(msgspec.structs.replace(expression, weekday=Field("*", 0b111_1111))):
        hint = "one that begins with *, or a day of week that begins with +, is no alternative: both have to match"
        raise BadTrigger(f"{weekday} never meets {day}, the day of month", field=DAY_OF_WEEK.name, hint=hint)
    months = expression.month.values
    longest = max(_LEAP[month - 1] for month in months)
    named = " and ".join(MONTH_NAMES[month - 1] for month in months)
    hint = f"{'it has' if len(months) == 1 else 'they have'} {longest} days at most"
    raise BadTrigger(f"{day} never comes in {named}", field=DAY_OF_MONTH.name, hint=hint)


def _has_days(expression: Expression) -> bool:
    if expression.year is None:
        kinds = {(length, weekday) for length in (365, 366) for weekday in range(7)}
    else:
        starts = [(_STARTS[year - _FIRST], _STARTS[year - _FIRST + 1]) for year in expression.year.values]
        kinds = {_kind(*start) for start in starts}
    return any(_days_of_year(expression, *kind) for kind in kinds)


def _kind(start: int, end: int) -> tuple[int, int]:
    """Return the length of a year and the weekday on which it begins: there are 14 kinds."""
    return end - start, (start + 4) % 7  # 1970-01-01 was a Thursday; Sunday is 0


def _days_of_year(expression: Expression, length: int, weekday: int) -> int:
    """Return the days of a year as bits; bit 0 is the first of January, which is on `weekday`."""
    days = before = 0
    for month, size in enumerate(_LEAP if length == 366 else _COMMON, start=1):
        if expression.month.bits >> month & 1:
            days |= _days_of_month(expression, size, (weekday + before) % 7) << before
        before += size
    return days


def _days_of_month(expression: Expression, size: int, weekday: int) -> int:
    by_number = _by_number(expression.day, size, weekday)
    by_weekday = _by_weekday(expression.weekday, size, weekday)
    both = by_number | by_weekday if expression.either_day else by_number & by_weekday
    return both & (1 << size) - 1


def _by_number(field: Field, size: int, weekday: int) -> int:
    days = field.bits >> 1
    for back in field.from_last:
        if back < size:
            days |= 1 << size - 1 - back
    for number in field.near:
        if number <= size:
            days |= 1 << _nearest_working_day((number or size) - 1, size, weekday)
    return days


def _nearest_working_day(day: int, size: int, weekday: int) -> int:
    """Return the working day nearest to `day` within the same month; both are counted from 0."""
    match (weekday + day) % 7:
        case 6:
            return day - 1 if day else 2
        case 0:
            return day + 1 if day + 1 < size else day - 2
    return day


def _by_weekday(field: Field, size: int, weekday: int) -> int:
    week = field.bits | field.bits << 7
    days = (week >> weekday & 0b111_1111) * _WEEKS
    for day_of_week, nth in field.nth:
        first = (day_of_week - weekday) % 7
        place = first + 7 * (nth - 1) if nth else first + (size - 1 - first) // 7 * 7
        days |= 1 << place
    return days


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _highest(bits: int) -> int:
    return bits.bit_length() - 1
