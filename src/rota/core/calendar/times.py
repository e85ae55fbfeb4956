"""Sources of times, in seconds since the epoch: intervals, single instants, unions, and those filtered by windows."""

from __future__ import annotations

from typing import Protocol

from rota.core.calendar.windows import Allowed
from rota.core.calendar.zones import DAY, LAST_SECOND

MICROS = 1_000_000
_HORIZON = 50 * 366 * DAY
_MAX_SEARCH_STEPS = 20_000  # a day each for 50 years: a search that leads nowhere has an end
_FEW_PER_DAY = 4  # up to here, walking is cheaper than bit sets


class Source(Protocol):
    def next(self, after: int) -> int | None: ...
    def prev(self, before: int) -> int | None: ...
    def count(self, after: int, until: int) -> int: ...
    def bits(self, day: int) -> int: ...
    def marks(self, at: int) -> tuple[str, ...]: ...


class Intervals:
    def __init__(self, interval: int, anchor: int) -> None:
        self._interval = interval
        self._phase = anchor % interval
        self._pattern: int | None = None

    def next(self, after: int) -> int | None:
        fire = after + self._interval - (after - self._phase) % self._interval
        return fire if fire <= LAST_SECOND else None

    def prev(self, before: int) -> int | None:
        fire = before - 1 - (before - 1 - self._phase) % self._interval
        return fire if fire >= 0 else None

    def count(self, after: int, until: int) -> int:
        return (until - self._phase) // self._interval - (after - self._phase) // self._interval

    def bits(self, day: int) -> int:
        first = (self._phase - day * DAY) % self._interval
        return self._day_pattern() << first & (1 << DAY) - 1 if first < DAY else 0

    def marks(self, at: int) -> tuple[str, ...]:
        return ()

    def _day_pattern(self) -> int:
        """Return the bit set of a day that fires at its start."""
        if self._pattern is None:
            pattern, size = 1, self._interval
            while size < DAY:
                pattern |= pattern << size
                size *= 2
            self._pattern = pattern
        return self._pattern


class Single:
    def __init__(self, at: int) -> None:
        self._at = at

    def next(self, after: int) -> int | None:
        return self._at if self._at > after else None

    def prev(self, before: int) -> int | None:
        return self._at if self._at < before else None

    def count(self, after: int, until: int) -> int:
        return int(after < self._at <= until)

    def bits(self, day: int) -> int:
        return 1 << self._at % DAY if self._at // DAY == day else 0

    def marks(self, at: int) -> tuple[str, ...]:
        return ()


class Union:
    """Times of several sources. An instant that several of them name counts once."""

    def __init__(self, parts: list[Source]) -> None:
        self._parts = parts

    def next(self, after: int) -> int | None:
        return min((fire for part in self._parts if (fire := part.next(after)) is not None), default=None)

    def prev(self, before: int) -> int | None:
        return max((fire for part in self._parts if (fire := part.prev(before)) is not None), default=None)

    def count(self, after: int, until: int) -> int:
        most = sum(part.count(after, until) for part in self._parts)
        return _count(self, after, until, most)

    def bits(self, day: int) -> int:
        fires = 0
        for part in self._parts:
            fires |= part.bits(day)
        return fires

    def marks(self, at: int) -> tuple[str, ...]:
        naming = [part for part in self._parts if part.next(at - 1) == at]
        return tuple(dict.fromkeys(mark for part in naming for mark in part.marks(at)))


class Filtered:
    """Times of a source that windows and dates allow. A search gives up after 50 years, or as many windows as days."""

    def __init__(self, source: Source, allowed: Allowed) -> None:
        self._source = source
        self._allowed = allowed

    def next(self, after: int) -> int | None:
        candidate = self._source.next(after)
        for _ in range(_MAX_SEARCH_STEPS):
            if candidate is None or candidate > after + _HORIZON:
                break
            opens = self._allowed.next(candidate)
            if opens is None or opens == candidate:
                return opens
            candidate = self._source.next(opens - 1)
        return None

    def prev(self, before: int) -> int | None:
        candidate = self._source.prev(before)
        for _ in range(_MAX_SEARCH_STEPS):
            if candidate is None or candidate < before - _HORIZON:
                break
            closes = self._allowed.prev(candidate)
            if closes is None or closes == candidate:
                return closes
            candidate = self._source.prev(closes + 1)
        return None

    def count(self, after: int, until: int) -> int:
        return _count(self, after, until, self._source.count(after, until))

    def bits(self, day: int) -> int:
        bits = self._source.bits(day)
        return bits & self._allowed.bits(day) if bits else 0

    def marks(self, at: int) -> tuple[str, ...]:
        return self._source.marks(at)


def _count(source: Union | Filtered, after: int, until: int, most: int) -> int:
    """Count the times in `after` < t ≤ `until`, of which there are at most `most`."""
    first, last = (after + 1) // DAY, until // DAY
    if most <= (last - first + 1) * _FEW_PER_DAY:
        return _count_by_walking(source, after, until)
    total = 0
    for day in range(first, last + 1):
        bits = source.bits(day)
        if day == last:
            bits &= (2 << until % DAY) - 1
        if day == first:
            bits >>= (after + 1) % DAY
        total += bits.bit_count()
    return total


def _count_by_walking(source: Union | Filtered, after: int, until: int) -> int:
    total = 0
    while (at := source.next(after)) is not None and at <= until:
        total += 1
        after = at
    return total
