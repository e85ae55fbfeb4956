"""Instants at which a cron expression fires in a time zone, under its modes for gaps and folds."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, assert_never

from rota.core.calendar.cron_matcher import CronMatcher
from rota.core.calendar.cron_parser import read
from rota.core.calendar.zones import DAY, LAST_SECOND, Piece, Zone, zone

_FAR = 2 * DAY  # more than two offsets can differ by


class GapMode(StrEnum):
    """Treatment of a time of the day that does not exist because the clocks were set forward.

    `after`: it fires right after the gap.
    """

    AFTER = "after"
    SKIP = "skip"


class FoldMode(StrEnum):
    """Choice of the pass that counts when the clocks are set back and a time of the day comes twice."""

    FIRST = "first"
    LAST = "last"
    BOTH = "both"


class _Span(NamedTuple):
    """Part of a zone with one offset. Matching wall times from `low` up to `high` fire, and `start` if `shifted`."""

    start: int
    end: int
    offset: int
    low: int
    high: int
    shifted: bool


class CronTimes:
    """Times of a cron expression in a zone, in seconds since the epoch.

    The span looked at last is a cache, replaced in one assignment: any thread may use the object without a lock.
    """

    def __init__(self, calendar: CronMatcher, zone: Zone, gap: GapMode, fold: FoldMode) -> None:
        """Expect `skip` and `both` as modes of an expression without fixed times: nothing is decided for it."""
        self._calendar = calendar
        self._zone = zone
        self._gap = gap
        self._fold = fold
        self._span = self._span_of(zone.piece(0))

    def next(self, after: int) -> int | None:
        span = self._span
        if not span.start <= after < span.end:
            span = self._span_at(after)
            if span.shifted and after < span.start:
                return span.start
        wall = after + span.offset
        matching = self._calendar.next(wall if wall >= span.low else span.low - 1)
        while matching is not None:
            if matching < span.high:
                return matching - span.offset
            # Jump towards the match, but not into the two days before it: a change of the clocks there may repeat wall
            # times, and then an earlier instant would be missed.
            onward = span.end if span.end - after < _FAR else max(span.end, matching - _FAR)
            if onward > LAST_SECOND:
                break
            span = self._span_at(onward)
            if span.shifted:
                return span.start
            after = span.start
            matching = self._calendar.next(span.low - 1)
        return None

    def prev(self, before: int) -> int | None:
        last = before - 1
        span = self._span
        if not span.start <= last < span.end:
            span = self._span_at(last)
        wall = before + span.offset
        matching = self._calendar.prev(min(wall, span.high))
        while matching is not None:
            if matching >= span.low:
                return matching - span.offset
            if span.shifted and span.start <= last:
                return span.start
            if span.start <= 0:
                break
            last = span.start - 1 if last - span.start < _FAR else max(min(span.start - 1, matching + _FAR), 0)
            span = self._span_at(last)
            last = span.end
            matching = self._calendar.prev(span.high)
        return None

    def count(self, after: int, until: int) -> int:
        """Count the times in `after` < t ≤ `until`."""
        total, at = 0, max(after + 1, 0)
        until = min(until, LAST_SECOND)
        while at <= until:
            span = self._span_at(at)
            low = max(at + span.offset, span.low)
            high = min(until + span.offset + 1, span.high)
            total += self._calendar.count(low, high)
            if span.shifted and span.start >= at:
                total += 1 - self._calendar.count(span.low, span.low + 1)
            at = span.end
        return total

    def bits(self, day: int) -> int:
        """Return a bit set: bit n is set if second n of the UTC day fires."""
        first, fires = day * DAY, 0
        at = first
        while at < first + DAY:
            span = self._span_at(at)
            low = max(at + span.offset, span.low)
            high = min(first + DAY + span.offset, span.high)
            if low < high:
                fires |= self._calendar.bits(low, high) << low - span.offset - first
            if span.shifted and span.start >= first:
                fires |= 1 << span.start - first
            at = span.end
        return fires

    def marks(self, at: int) -> tuple[str, ...]:
        """Return the marks of an instant that fires; `transition` if the one before it was at another offset."""
        piece = self._zone.piece(at)
        wall = at + piece.offset
        marks = []
        if at == piece.start and self._is_shifted(piece):
            marks.append("gap")
        if wall >= piece.repeats:
            marks.append("fold-first")
        if wall < piece.fresh:
            marks.append("fold-second")
        earlier = self.prev(at)
        if earlier is not None and self._zone.offset(earlier) != piece.offset:
            marks.append("transition")
        return tuple(marks)

    def _span_at(self, at: int) -> _Span:
        span = self._span
        if not span.start <= at < span.end:
            self._span = span = self._span_of(self._zone.piece(at))
        return span

    def _span_of(self, piece: Piece) -> _Span:
        start, end, offset = piece.start, piece.end, piece.offset
        low, high = start + offset, end + offset
        match self._fold:
            case FoldMode.FIRST:
                low = piece.fresh
            case FoldMode.LAST:
                high = piece.repeats
            case FoldMode.BOTH:
                pass
            case _:
                assert_never(self._fold)
        return _Span(start, end, offset, low, high, self._is_shifted(piece))

    def _is_shifted(self, piece: Piece) -> bool:
        """Return whether a gap ends where the piece starts, and has swallowed a match."""
        if piece.before >= piece.offset:
            return False
        match self._gap:
            case GapMode.SKIP:
                return False
            case GapMode.AFTER:
                wall = self._calendar.next(piece.start + piece.before - 1)
                return wall is not None and wall < piece.start + piece.offset
            case _:
                assert_never(self._gap)


def cron_times(expression: str, timezone: str, gap: GapMode, fold: FoldMode, salt: str) -> CronTimes:
    """Return the times of an expression. Those of one without `H` are the same for every salt, and shared."""
    place = zone(timezone)
    parsed = read(expression, salt)
    if not parsed.is_fixed:
        gap, fold = GapMode.SKIP, FoldMode.BOTH
    return _shared(expression, place, gap, fold, salt * parsed.has_hash)


# Thousands of schedules share a handful of expressions; what differs by salt has an entry for each name.
@lru_cache(maxsize=4_096)
def _shared(expression: str, place: Zone, gap: GapMode, fold: FoldMode, salt: str) -> CronTimes:
    return CronTimes(CronMatcher(read(expression, salt)), place, gap, fold)
