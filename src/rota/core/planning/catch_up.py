"""Catch-up: split the plan times that are due into those that get a run, those covered by one, and those missed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Protocol, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from rota.core.schedules.policies import CatchUp, CatchUpMode
from rota.values.durations import in_micros

_SECOND = 1_000_000


class PlanTimes(Protocol):
    """Interface of a rule's times that planning needs; instants are microseconds."""

    def next(self, after: int) -> int | None: ...
    def prev(self, before: int) -> int | None: ...
    def count(self, a: int, b: int) -> int:
        """Count the plan times in (a, b]."""


class Gap(msgspec.Struct, frozen=True):
    """Range of plan times without a run: the first, the last, how many, and why."""

    from_at: int
    to_at: int
    count: int
    reason: str


class Due(msgspec.Struct, frozen=True, gc=False):
    """Decision about plan times that are due. `kept` get a run, oldest first; the first covers `covered` older ones.

    Everything up to `cursor` is decided.

    `following` is the plan time after the cursor, if that is known already.
    """

    kept: tuple[int, ...]
    cursor: int
    covers_from: int | None = None
    covered: int = 0
    missed: tuple[Gap, ...] = ()
    more: bool = False
    following: int | UnsetType | None = UNSET


def choose(policy: CatchUp, times: PlanTimes, cursor: int, horizon: int, room: int | None = None) -> Due:
    """Decide about the plan times in (cursor, horizon]; at most `room` of them may still get a run."""
    newest = times.prev(horizon + 1)
    if newest is None or newest <= cursor or room == 0:
        return Due((), cursor)
    mode = policy.mode
    match mode:
        case CatchUpMode.NONE:
            return _punctual(policy, times, cursor, horizon, newest)
        case CatchUpMode.LATEST:
            return _latest(policy, times, cursor, horizon, newest)
        case CatchUpMode.ALL:
            return _each(policy, times, cursor, horizon, newest, room)
        case _:
            assert_never(mode)


def _before_window(policy: CatchUp, times: PlanTimes, cursor: int, horizon: int) -> tuple[int, tuple[Gap, ...]]:
    """Return the instant after which the catch-up window begins, and the plan times that are missed before it."""
    edge = max(cursor, horizon - in_micros(policy.window) - 1)
    return edge, _gap(times, cursor, edge, "older than the catch-up window")


def _latest(policy: CatchUp, times: PlanTimes, cursor: int, horizon: int, newest: int) -> Due:
    edge, missed = _before_window(policy, times, cursor, horizon)
    if newest <= edge:
        return Due((), newest, missed=missed)
    older = times.count(edge, newest) - 1
    covers_from = times.next(edge) if older else None
    return Due((newest,), newest, covers_from, older, missed)


def _punctual(policy: CatchUp, times: PlanTimes, cursor: int, horizon: int, newest: int) -> Due:
    # Plan times are whole seconds: less than one is not late.
    edge = max(cursor, horizon - (in_micros(policy.grace) // _SECOND + 1) * _SECOND)
    if newest <= edge:
        return Due((), newest, missed=_gap(times, cursor, newest, "later than its grace"))
    late = _gap(times, cursor, edge, "later than its grace")
    return Due((newest,), newest, missed=(*late, *_gap(times, edge, newest - 1, "due together with a newer one")))


def _each(policy: CatchUp, times: PlanTimes, cursor: int, horizon: int, newest: int, room: int | None) -> Due:
    edge, missed = _before_window(policy, times, cursor, horizon)
    if newest <= edge:
        return Due((), newest, missed=missed)
    first = edge
    waiting = times.count(edge, horizon)
    if waiting > policy.keep:
        first = _oldest_of_newest(times, horizon, policy.keep) - 1
        missed += _gap(times, edge, first, f"more than the newest {policy.keep}")
    bite = policy.per_tick if room is None else min(room, policy.per_tick)
    kept = tuple(islice(_following(times, first, horizon), bite))
    return Due(kept, kept[-1], missed=missed, more=min(waiting, policy.keep) > len(kept))


def _following(times: PlanTimes, after: int, until: int) -> Iterator[int]:
    plan_time = times.next(after)
    while plan_time is not None and plan_time <= until:
        yield plan_time
        plan_time = times.next(plan_time)


def _oldest_of_newest(times: PlanTimes, horizon: int, keep: int) -> int:
    at = horizon + 1
    for _ in range(keep):
        earlier = times.prev(at)
        assert earlier is not None  # there are more than `keep` of them
        at = earlier
    return at


def _gap(times: PlanTimes, after: int, until: int, reason: str) -> tuple[Gap, ...]:
    count = times.count(after, until) if until > after else 0
    if not count:
        return ()
    first, last = times.next(after), times.prev(until + 1)
    assert first is not None  # there are `count` of them
    assert last is not None
    return (Gap(first, last, count, reason),)
