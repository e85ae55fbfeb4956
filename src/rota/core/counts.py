"""What processes counted of a minute or an hour: values that can be merged, and what they tell."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.core.statistics import success_rate

MINUTE, HOUR = 60_000_000, 3_600_000_000
SPANS = {60: MINUTE, 3_600: HOUR}
"""How long a row counts, in seconds as it is stored, and in microseconds."""


class Counted(msgspec.Struct, frozen=True, omit_defaults=True):
    """Runs by how they ended, and two histograms by `statistics.bucket`, in microseconds: how long handlers took, and
    how long runs were due before they were claimed.

    `levels`: queue → runs that were queued, running and waiting, when somebody looked.
    """

    runs: dict[str, int] = {}
    durations: dict[int, int] = {}
    lag: dict[int, int] = {}
    levels: dict[str, tuple[int, int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.runs or self.durations or self.lag)


class LastDay(msgspec.Struct, frozen=True):
    """Runs that ended within the last 24 hours, by their state; as exact as charts are.

    `success_rate`: of those that succeeded, failed, timed out or expired.
    """

    runs: dict[str, int]
    success_rate: float | None


def merged(parts: Iterable[Counted]) -> Counted:
    """In whatever order: the same. Of levels, those of one look are kept: the largest ones."""
    runs: dict[str, int] = {}
    durations: dict[int, int] = {}
    lag: dict[int, int] = {}
    levels: dict[str, tuple[int, int, int]] = {}
    for part in parts:
        for state, count in part.runs.items():
            runs[state] = runs.get(state, 0) + count
        for mine, others in ((durations, part.durations), (lag, part.lag)):
            for low, count in others.items():
                mine[low] = mine.get(low, 0) + count
        if part.levels:
            levels = max(levels, part.levels, key=_fullness)
    return Counted(runs, durations, lag, levels)


def _fullness(levels: dict[str, tuple[int, int, int]]) -> tuple[int, list[tuple[str, tuple[int, int, int]]]]:
    return sum(sum(counts) for counts in levels.values()), sorted(levels.items())


def last_day(parts: Iterable[Counted]) -> LastDay:
    runs = merged(parts).runs
    return LastDay(runs=dict(sorted(runs.items())), success_rate=success_rate(runs))
