"""Statistics of a job's finished runs: tallies that can be merged, and what they tell."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from rota.core.states import RunState
from rota.values.ids import milliseconds_of
from rota.values.instants import instant

_S = RunState
_SUCCESS_COUNTS = (_S.SUCCEEDED, _S.FAILED, _S.TIMED_OUT, _S.EXPIRED)
_DAY = 86_400_000_000
_DIGITS = 2
MOST_DAYS = 400
BEFORE_ALL_DAYS = 0
"""Day number of the row that sums up all older days."""


_LATE = 900_000_000  # µs: ids carry the time at which the client made them, not when the run was inserted


class Tally(msgspec.Struct, frozen=True, omit_defaults=True):
    """Counts of runs that outlive their rows; times and durations in microseconds.

    `durations` counts the attempts that ended their run by `bucket`; `timed` and `busy` are their number and sum.
    `ended` is how the last run that was not skipped ended.
    """

    states: dict[str, int] = {}
    durations: dict[int, int] = {}
    timed: int = 0
    busy: int = 0
    first_at: int | None = None
    began_at: int | None = None
    ended_at: int | None = None
    ended: str | None = None


class Ended(msgspec.Struct, frozen=True):
    """Finished run as far as it is counted."""

    state: str
    created_at: int
    started_at: int | None
    finished_at: int


class JobStats(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of all runs of a job that ever ended, pruned ones included."""

    job: str
    total: int
    """Runs that ended."""
    succeeded: int
    """Runs that succeeded."""
    failed: int
    """Runs that failed."""
    timed_out: int
    """Runs that timed out."""
    cancelled: int
    """Runs that were cancelled."""
    expired: int
    """Runs that were lost and not retried."""
    skipped: int
    """Runs that never began."""
    success_rate: float | None
    average_duration_ms: int | None
    p50_duration_ms: int | None
    """Duration that half of them do not exceed."""
    p95_duration_ms: int | None
    """Duration that 95 % do not exceed."""
    first_at: datetime | None
    """Time of the first one."""
    last_execution_at: datetime | None
    """When the last one began."""
    next_scheduled_at: datetime | None


def bucket(micros: int) -> int:
    """Round a duration down to its first two digits: a histogram whose buckets grow with the durations.

    The middle of a bucket is at most 5 % away from anything in it. Digits, not logarithms, so that every database
    computes the same.
    """
    size = bucket_size(len(str(micros)))
    return micros // size * size


def bucket_size(digits: int) -> int:
    """Return the width of the buckets of numbers with so many digits."""
    return int(10 ** max(0, digits - _DIGITS))


def bucket_bounds(first: int, last: int) -> list[int]:
    """Return the lower bounds of the buckets from one power of ten to another."""
    bounds: list[int] = []
    while first <= last:
        bounds += range(first, min(first * 10, last + 1), first // 10)
        first *= 10
    return bounds


def _middle(low: int) -> float:
    return low + (bucket_size(len(str(low))) - 1) / 2


def day_of(micros: int) -> int:
    return micros // _DAY


def is_late(id: str, created_at: int) -> bool:
    """Return whether a run was inserted long after its id was made.

    Counting proceeds in the order of ids, and may have passed this one before the run existed.
    """
    return created_at > milliseconds_of(id) * 1_000 + _LATE


def countable_until(now: int) -> int:
    """Return the instant up to which ids are counted.

    A run that is not late exists by then, unless its transaction stayed open as long again.
    """
    return now - 2 * _LATE


def tally_of(run: Ended) -> Tally:
    took = None if run.started_at is None else max(0, run.finished_at - run.started_at)
    # The start of a lost attempt is not recorded: the time when it was given up stands for it.
    given_up = run.finished_at if run.state == RunState.EXPIRED else None
    counts = run.state != RunState.SKIPPED
    return Tally(
        states={run.state: 1},
        durations={} if took is None else {bucket(took): 1},
        timed=int(took is not None),
        busy=took or 0,
        first_at=run.created_at,
        began_at=given_up if run.started_at is None else run.started_at,
        ended_at=run.finished_at if counts else None,
        ended=run.state if counts else None,
    )


def merged(tallies: Iterable[Tally]) -> Tally:
    """Merge tallies, in any order."""
    states: dict[str, int] = {}
    durations: dict[int, int] = {}
    timed = busy = 0
    first: int | None = None
    began: int | None = None
    last: tuple[int, str] | None = None
    for tally in tallies:
        _add(states, tally.states)
        _add(durations, tally.durations)
        timed += tally.timed
        busy += tally.busy
        first = min((at for at in (first, tally.first_at) if at is not None), default=None)
        began = max((at for at in (began, tally.began_at) if at is not None), default=None)
        if tally.ended_at is not None and tally.ended is not None:
            last = max(last or (0, ""), (tally.ended_at, tally.ended))
    ended_at, ended = last or (None, None)
    return Tally(states, durations, timed, busy, first, began, ended_at, ended)


def _add(counts: dict[str, int] | dict[int, int], more: dict[str, int] | dict[int, int]) -> None:
    into: dict[object, int] = counts  # type: ignore[assignment]
    for name, count in more.items():
        into[name] = into.get(name, 0) + count


def by_day(runs: Iterable[Ended]) -> dict[int, Tally]:
    """Tally runs per day of their end."""
    days: dict[int, list[Tally]] = {}
    for run in runs:
        days.setdefault(day_of(run.finished_at), []).append(tally_of(run))
    return {day: merged(tallies) for day, tallies in days.items()}


def days_kept(days: Iterable[int]) -> set[int]:
    """Return the days that keep a row of their own; all others share one, so that a job's rows are bounded."""
    return set(sorted({*days} - {BEFORE_ALL_DAYS}, reverse=True)[: MOST_DAYS - 1])


def percentile(durations: dict[int, int], share: float) -> float | None:
    """Return the middle of the bucket below which this `share` of the durations lies."""
    missing = share * sum(durations.values())
    for low, count in sorted(durations.items()):
        missing -= count
        if missing <= 0:
            return _middle(low)
    return None


def success_rate(states: dict[str, int]) -> float | None:
    """Return the share of success among runs that succeeded, failed, timed out or expired."""
    decided = sum(states.get(state.value, 0) for state in _SUCCESS_COUNTS)
    return states.get(_S.SUCCEEDED.value, 0) / decided if decided else None


def stats_of(job: str, tally: Tally, running_since: int | None = None, next_at: int | None = None) -> JobStats:
    """Build the statistics of a job; `running_since` is when its newest running attempt was claimed."""
    counts = {state: tally.states.get(state.value, 0) for state in RunState if state.is_final}
    p50, p95 = (percentile(tally.durations, share) for share in (0.5, 0.95))
    began = max((at for at in (tally.began_at, running_since) if at is not None), default=None)
    return JobStats(
        job=job,
        total=sum(counts.values()),
        **{state.value: count for state, count in counts.items()},
        success_rate=success_rate(tally.states),
        average_duration_ms=round(tally.busy / tally.timed / 1_000) if tally.timed else None,
        p50_duration_ms=None if p50 is None else round(p50 / 1_000),
        p95_duration_ms=None if p95 is None else round(p95 / 1_000),
        first_at=_instant(tally.first_at),
        last_execution_at=_instant(began),
        next_scheduled_at=_instant(next_at),
    )


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else instant(micros)
