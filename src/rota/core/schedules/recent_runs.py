"""Recent runs of a schedule, for lists of schedules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import ceil

import msgspec

from rota.core.states import RunState
from rota.errors import Invalid
from rota.values.instants import instant, maybe_instant

MOST_RECENT = 100
_MOST_RUNS = 15_000


class RecentRun(msgspec.Struct, frozen=True, kw_only=True):
    """Recent run; `lateness_ms`: from when it was due, delay and jitter included, until its first attempt began."""

    run_id: str
    plan_time: datetime
    state: RunState
    started_at: datetime | None
    finished_at: datetime | None
    lateness_ms: int | None
    """From when it was due until its first attempt began."""
    duration_ms: int | None


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """Recent runs, the oldest first, and percentiles of their durations."""

    recent: Sequence[RecentRun] = ()
    """The last runs, the oldest first."""
    p50_duration_ms: int | None = None
    """Half of these runs took at most this long."""
    p95_duration_ms: int | None = None
    """All but one in twenty of these runs took at most this long."""


class Planned(msgspec.Struct, frozen=True):
    """Run of a plan time; instants in microseconds. `began_at`: its first attempt, if it has had several."""

    run_id: str
    plan_time: int
    run_at: int
    state: str
    began_at: int | None
    started_at: int | None
    finished_at: int | None


def checked_recent(schedules: int, limit: int) -> int:
    """Validate how many runs of each schedule to return."""
    if not 1 <= limit <= MOST_RECENT:
        raise Invalid(f"recent must be 1 to {MOST_RECENT}, not {limit}")
    if schedules * limit > _MOST_RUNS:
        fewer = f"at most {_MOST_RUNS // limit} schedules at a time, or fewer runs of each"
        raise Invalid(f"{limit} runs of {schedules} schedules are too many at once", hint=fewer)
    return limit


def scopes_each(scopes: Sequence[int], limit: int, most: int) -> int:
    """Return how many scopes of each schedule to read: fewer where many schedules have several."""
    for each in range(most, 1, -1):
        if sum(min(count, each) for count in scopes) * limit <= _MOST_RUNS:
            return each
    return 1


def recent_of(runs: Iterable[Planned], limit: int) -> Recent:
    """Take the newest `limit` of the runs, which are the newest ones of each scope."""
    newest = sorted(runs, key=lambda run: (run.plan_time, run.run_id))[-limit:]
    recent = [_recent_run(run) for run in newest]
    durations = sorted(shown.duration_ms for shown in recent if shown.duration_ms is not None)
    return Recent(recent=recent, p50_duration_ms=_at(durations, 0.5), p95_duration_ms=_at(durations, 0.95))


def _recent_run(run: Planned) -> RecentRun:
    began = run.started_at if run.began_at is None else run.began_at
    return RecentRun(
        run_id=run.run_id,
        plan_time=instant(run.plan_time),
        state=RunState(run.state),
        started_at=maybe_instant(run.started_at),
        finished_at=maybe_instant(run.finished_at),
        lateness_ms=_between(run.run_at, began),
        duration_ms=_between(run.started_at, run.finished_at),
    )


def _between(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else max(0, end - start) // 1_000


def _at(ordered: Sequence[int], share: float) -> int | None:
    """Return the smallest value that this share of the values does not exceed."""
    return ordered[ceil(share * len(ordered)) - 1] if ordered else None
