"""Fake plan times without a rule, which count how often they are read."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, cast

from rota.core.calendar.rules import Rule, Times
from rota.core.calendar.triggers import After, Every, every
from rota.core.planning.tick import ScheduleState
from rota.core.schedules.schedule import ScheduleDefinition

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND


class Listed:
    """Exactly these instants."""

    def __init__(self, instants: Iterable[int]) -> None:
        self.instants = sorted(set(instants))
        self.asked = 0

    def next(self, after: int) -> int | None:
        self.asked += 1
        place = bisect_right(self.instants, after)
        return self.instants[place] if place < len(self.instants) else None

    def prev(self, before: int) -> int | None:
        self.asked += 1
        place = bisect_left(self.instants, before)
        return self.instants[place - 1] if place else None

    def count(self, a: int, b: int) -> int:
        self.asked += 1
        return max(0, bisect_right(self.instants, b) - bisect_right(self.instants, a))


class Steady:
    """Every multiple of a step, from the epoch on for ever, at no cost."""

    def __init__(self, step: int = SECOND) -> None:
        self.step = step
        self.asked = 0

    def next(self, after: int) -> int | None:
        self.asked += 1
        return (after // self.step + 1) * self.step

    def prev(self, before: int) -> int | None:
        self.asked += 1
        return (before - 1) // self.step * self.step if before > 0 else None

    def count(self, a: int, b: int) -> int:
        self.asked += 1
        return max(0, b // self.step - a // self.step)

    def next_allowed(self, at: int) -> int | None:
        return at


class StandingOn(ScheduleState, frozen=True, kw_only=True):
    """A schedule's standing on such plan times instead of its rule's."""

    known: Any

    @property
    def times(self) -> Times:
        return cast("Times", self.known)


def standing(
    known: Listed | Steady | None = None,
    *,
    cursor: int = 0,
    fired: int = 0,
    trigger: Every | After | None = None,
    **policies: Any,
) -> StandingOn:
    """Return a schedule that has decided everything up to `cursor`; `policies` are fields of its definition."""
    known = known or Steady()
    rule = Rule(trigger=trigger or every("1s"))
    definition = ScheduleDefinition(job="report", rule=rule, **policies)
    upcoming = known.next(cursor)
    known.asked = 0
    return StandingOn("s1", "nightly", definition, cursor, upcoming, fired, known=known)
