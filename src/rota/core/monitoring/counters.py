"""Counters of processes per minute, per five minutes and per hour: values that can be merged; and gauges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from rota.core.monitoring.statistics import success_rate

K = TypeVar("K", str, int)

MINUTE, HOUR = 60_000_000, 3_600_000_000
FEW_MINUTES = 5 * MINUTE
SPANS = {60: MINUTE, 300: FEW_MINUTES, 3_600: HOUR}
"""Spans of counter rows: stored seconds → microseconds. With longer spans a chart reads fewer rows."""


class Counted(msgspec.Struct, frozen=True, omit_defaults=True):
    """Counts of runs by final state, and two histograms by `statistics.bucket`, in microseconds.

    `durations`: how long handlers took. `lag`: how long runs were due before they were claimed. `levels`: queue →
    numbers of queued, running and waiting runs in a sample.
    """

    runs: dict[str, int] = {}
    durations: dict[int, int] = {}
    lag: dict[int, int] = {}
    levels: dict[str, tuple[int, int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.runs or self.durations or self.lag)


Rows = dict[tuple[int, int], Counted]
"""Counter rows of one process: (span, start) → counts."""

_MOST_QUEUES = 100
_OTHERS = "*"
_PLACES = {"queued": 0, "running": 1, "waiting": 2}


class QueueGauge(msgspec.Struct, frozen=True):
    """Number of runs of a queue in a state; `oldest`: µs since the oldest was due, or claimed; None if none waits."""

    name: str
    state: str
    runs: int
    oldest: int | None = None


class Gauges(msgspec.Struct, frozen=True, kw_only=True):
    """Gauges of an installation.

    `schedules` by state: active, paused, disabled. `overdue` ones were due for a while, and were not planned.

    `breached`: (kind, subject, what) of expectations that are not met. `attention`: numbers of items by kind.
    `servers` are live processes that serve no queue but that of notifications.
    """

    queues: Sequence[QueueGauge] = ()
    workers_alive: int = 0
    workers_silent: int = 0
    servers: int = 0
    slots: int = 0
    schedules: dict[str, int] = {}
    overdue: int = 0
    breached: Sequence[tuple[str, str, str]] = ()
    attention: Mapping[str, int] = {}


class LastDay(msgspec.Struct, frozen=True):
    """Runs that ended within the last 24 hours, by state; as exact as charts are.

    `success_rate`: share of success among those that succeeded, failed, timed out or expired.
    """

    runs: dict[str, int]
    success_rate: float | None


def merged(parts: Iterable[Counted]) -> Counted:
    """Merge counters in any order. The levels of one sample are kept, the fullest."""
    runs: dict[str, int] = {}
    durations: dict[int, int] = {}
    lag: dict[int, int] = {}
    levels: dict[str, tuple[int, int, int]] = {}
    for part in parts:
        for state, count in part.runs.items():
            runs[state] = runs.get(state, 0) + count
        for totals, counts in ((durations, part.durations), (lag, part.lag)):
            for low, count in counts.items():
                totals[low] = totals.get(low, 0) + count
        if part.levels:
            levels = max(levels, part.levels, key=_fullness)
    return Counted(runs, durations, lag, levels)


def _fullness(levels: dict[str, tuple[int, int, int]]) -> tuple[int, list[tuple[str, tuple[int, int, int]]]]:
    return sum(sum(counts) for counts in levels.values()), sorted(levels.items())


def last_day(parts: Iterable[Counted]) -> LastDay:
    runs = merged(parts).runs
    return LastDay(runs=dict(sorted(runs.items())), success_rate=success_rate(runs))


def since(now: Counted, before: Counted) -> Counted:
    """Return the difference between two readings of counters that only grow."""
    return Counted(_grown(now.runs, before.runs), _grown(now.durations, before.durations), _grown(now.lag, before.lag))


def _grown(now: dict[K, int], before: dict[K, int]) -> dict[K, int]:
    return {key: count - before.get(key, 0) for key, count in now.items() if count > before.get(key, 0)}


def added(rows: Rows, more: Counted, at: int) -> Rows:
    """Add `more`, counted at `at`, to the rows of this process.

    If the clock goes back, it is added to the newest row. A row always holds all that was ever counted for it, so
    writing it again is idempotent, and a row that was dropped from memory is never begun anew.
    """
    after = dict(rows)
    for span, length in SPANS.items():
        newest = max((begin for other, begin in rows if other == span), default=0)
        key = span, max(at // length * length, newest)
        after[key] = merged([after.get(key, Counted()), more])
    return after


def newest(rows: Rows) -> Rows:
    """Return the rows that may still grow; the others may be forgotten once they are written."""
    last = {span: max((begin for other, begin in rows if other == span), default=0) for span in SPANS}
    return {(span, at): counted for (span, at), counted in rows.items() if last[span] == at}


def levels_of(gauges: Iterable[QueueGauge]) -> Counted:
    """Count the fullest queues by name, and all others together."""
    counts: dict[str, list[int]] = {}
    for level in gauges:
        if level.state in _PLACES:
            counts.setdefault(level.name, [0, 0, 0])[_PLACES[level.state]] += level.runs
    ordered = sorted(counts.items(), key=lambda entry: (-sum(entry[1]), entry[0]))
    levels = {name: (queued, running, waiting) for name, (queued, running, waiting) in ordered[:_MOST_QUEUES]}
    if smaller := [numbers for _, numbers in ordered[_MOST_QUEUES:]]:
        queued, running, waiting = map(sum, zip(*smaller, strict=True))
        levels[_OTHERS] = queued, running, waiting
    return Counted(levels=levels)
