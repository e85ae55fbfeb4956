"""Rules: a trigger with its bounds, execution windows and excluded dates, compiled into the times it plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from rota.core.calendar.times import MICROS, Filtered, Source
from rota.core.calendar.triggers import Trigger, validate
from rota.core.calendar.windows import Allowed, Window, window_of
from rota.core.calendar.zones import LAST_SECOND, zone
from rota.errors import BadTrigger

__all__ = ["Rule", "Times", "Window", "check", "compiled", "window_of"]

_HORIZON = 50 * 366 * 86_400 * MICROS


class Rule(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A trigger with its bounds; windows and excluded dates, in `timezone`, remove plan times. `end_at` is included."""

    trigger: Trigger
    start_at: int | None = None
    end_at: int | None = None
    windows: tuple[Window, ...] = ()
    exclude: tuple[str, ...] = ()
    timezone: str = "UTC"


class Times:
    """Plan times of a rule, in microseconds, always whole seconds. A rule that waits for ends of runs has none."""

    def __init__(self, rule: Rule, source: Source | None, allowed: Allowed | None) -> None:
        self.waits_for_ends = rule.trigger.waits_for_ends
        self._source = source
        self._allowed = allowed
        self._last_answer: tuple[int | None, int | None] = (None, None)
        self._first = 0 if rule.start_at is None else max(0, -(-rule.start_at // MICROS))
        self._last = LAST_SECOND if rule.end_at is None else min(LAST_SECOND, rule.end_at // MICROS)

    def next(self, after: int) -> int | None:
        """Return the smallest plan time > `after`."""
        if self._source is None:
            return None
        # Schedules that share a rule are mostly at the same place of it: one answer is cached, replaced in one
        # assignment, so that threads may share the object without a lock.
        last_after, answer = self._last_answer
        if last_after == after:
            return answer
        answer = self._next(after)
        self._last_answer = (after, answer)
        return answer

    def _next(self, after: int) -> int | None:
        assert self._source is not None
        second = after // MICROS
        if second < self._first:
            second = self._first - 1
        plan_second = self._source.next(second)
        return None if plan_second is None or plan_second > self._last else plan_second * MICROS

    def prev(self, before: int) -> int | None:
        """Return the largest plan time < `before`."""
        if self._source is None:
            return None
        second = -(-before // MICROS)
        if second > self._last:
            second = self._last + 1
        plan_second = self._source.prev(second)
        return None if plan_second is None or plan_second < self._first else plan_second * MICROS

    def count(self, after: int, until: int) -> int:
        """Count the plan times in `after` < t ≤ `until`."""
        low, high = max(after // MICROS, self._first - 1), min(until // MICROS, self._last)
        return 0 if self._source is None or low >= high else self._source.count(low, high)

    def parts(self, after: int, until: int, taken: Iterable[int]) -> Iterator[tuple[int, int, int]]:
        """Yield the first, the last and the number of plan times of each part of `after` < t ≤ `until`.

        Parts lie between the plan times that are `taken`, which are in order.
        """
        for at in (*taken, until + 1):
            count, first, last = self.count(after, at - 1), self.next(after), self.prev(at)
            if count and first is not None and last is not None:
                yield first, last, count
            after = at

    def is_time(self, at: int) -> bool:
        return self.next(at - 1) == at

    def marks(self, at: int) -> tuple[str, ...]:
        """Return what daylight saving did to a plan time: `gap`, `fold-first`, `fold-second`, `transition`."""
        return self._source.marks(at // MICROS) if self._source is not None and self.is_time(at) else ()

    def allows(self, at: int) -> bool:
        """Return whether bounds, windows and excluded dates leave this instant."""
        second = at // MICROS
        within = self._first * MICROS <= at and second <= self._last
        return within and (self._allowed is None or self._allowed.allows(second))

    def next_allowed(self, at: int) -> int | None:
        """Return the smallest whole second ≥ `at` that is allowed."""
        allowed: int | None = max(-(-at // MICROS), self._first)
        if self._allowed is not None and allowed is not None:
            allowed = self._allowed.next(allowed)
        return None if allowed is None or allowed > self._last else allowed * MICROS


def compiled(rule: Rule, salt: str) -> Times:
    """Compile a rule, or take it from the cache; `salt` decides what `H` in a cron expression stands for."""
    return _compiled(rule, salt if differs_by_salt(rule) else "")


def check(rule: Rule, salt: str, now: int) -> None:
    """Refuse a rule that makes no sense or never fires. One that is over, such as `once` in the past, may stand."""
    validate(rule.trigger)
    zone(rule.timezone)
    if rule.start_at is not None and rule.end_at is not None and rule.end_at < rule.start_at:
        raise BadTrigger("is before start_at", field="end_at")
    times = compiled(rule, salt)
    start = max(now, rule.start_at or 0)
    if times.waits_for_ends:
        _check_allowed(times, start, rule)
        return
    upcoming = times.next(start - 1)
    if upcoming is not None and upcoming <= start + _HORIZON:
        return
    unfiltered = compiled(msgspec.structs.replace(rule, windows=(), exclude=()), salt)
    if unfiltered.next(start - 1) is None and times.prev(start) is not None:
        return  # it is over
    if unfiltered.next(start - 1) is None and unfiltered.prev(start) is None:
        raise _never(rule, salt)
    raise _removed(rule) if rule.windows or rule.exclude else BadTrigger("it does not fire for 50 years")


def _never(rule: Rule, salt: str) -> BadTrigger:
    """Return the error that says why it has no plan time at all: its days never come, or its bounds leave none."""
    try:
        rule.trigger.require_days(salt)
    except BadTrigger as error:
        return error
    if rule.end_at is not None:
        return BadTrigger("no plan time is left until then", field="end_at", hint="a later one, or an earlier start_at")
    if rule.start_at is not None:
        return BadTrigger("no plan time is left from then on", field="start_at", hint="an earlier one")
    return BadTrigger("it never fires")


def _check_allowed(times: Times, start: int, rule: Rule) -> None:
    first_allowed = times.next_allowed(start)
    is_over = rule.end_at is not None and rule.end_at < start
    if (first_allowed is None or first_allowed > start + _HORIZON) and not is_over:
        raise _removed(rule)


def _removed(rule: Rule) -> BadTrigger:
    field = "windows" if rule.windows else "exclude"
    return BadTrigger("nothing is left of it for 50 years", field=field, hint="look at windows, exclude and timezone")


# Planning compiles rules on every tick: a planner with 20 000 different rules does it once for each.
@lru_cache(maxsize=20_000)
def _compiled(rule: Rule, salt: str) -> Times:
    source = rule.trigger.source(salt)
    allowed = Allowed(rule.windows, rule.exclude, rule.timezone) if rule.windows or rule.exclude else None
    if source is not None and allowed is not None:
        source = Filtered(source, allowed)
    return Times(rule, source, allowed)


@lru_cache(maxsize=20_000)
def differs_by_salt(rule: Rule) -> bool:
    return rule.trigger.differs_by_salt
