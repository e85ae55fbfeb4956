"""Runs that went wrong, grouped: by job and by the fingerprint of their error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from rota.core.runs.run import RunError
from rota.core.states import RunState
from rota.errors import Invalid
from rota.values.instants import instant, micros_at

BUCKETS = 24
MOST_GROUPS = 500
DAY = timedelta(days=1)


class FailedRun(msgspec.Struct, frozen=True):
    """A run that failed, timed out or expired, and when, in microseconds."""

    run_id: str
    state: str
    job: str
    fingerprint: str | None
    at: int


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Faults of one job that are the same. `type` and `message` are those of the newest; `states` how many ended in
    which; `histogram` how many in each of 24 equal parts of the time asked for. Errors from before there were
    fingerprints have none, and are one group."""

    fingerprint: str | None
    job: str
    type: str | None
    message: str | None
    count: int
    first_at: datetime
    last_at: datetime
    last_run_id: str
    states: dict[str, int]
    histogram: Sequence[int]

    def said_by(self, error: RunError | None, reason: str | None) -> ErrorGroup:
        said = reason if error is None else error.message
        return msgspec.structs.replace(self, type=None if error is None else error.type, message=said)


class ErrorGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The one that was seen last comes first. `truncated`: there were more faults than are looked at."""

    items: Sequence[ErrorGroup]
    since: datetime
    until: datetime
    truncated: bool


def checked_window(since: datetime | None, until: datetime | None, now: datetime) -> tuple[int, int]:
    """The last day, if nothing is said; in microseconds."""
    for at in (since, until):
        if at is not None and at.tzinfo is None:
            raise Invalid(f"{at.isoformat()} has no zone", hint="give an aware datetime: datetime.now(UTC)")
    end = micros_at(until or now)
    begin = max(0, end - DAY // timedelta(microseconds=1) if since is None else micros_at(since))
    if begin >= end:
        raise Invalid("since must be before until")
    return begin, end


def grouped(faults: Iterable[FailedRun], since: int, until: int) -> list[ErrorGroup]:
    groups: dict[tuple[str, str | None], list[FailedRun]] = {}
    for fault in faults:
        groups.setdefault((fault.job, fault.fingerprint), []).append(fault)
    found = [_group(sorted(same, key=lambda one: (one.at, one.run_id)), since, until) for same in groups.values()]
    return sorted(found, key=lambda group: (group.last_at, group.last_run_id), reverse=True)


def _group(same: Sequence[FailedRun], since: int, until: int) -> ErrorGroup:
    histogram, states = [0] * BUCKETS, dict.fromkeys(RunState, 0)
    for fault in same:
        histogram[(fault.at - since) * BUCKETS // (until - since)] += 1
        states[RunState(fault.state)] += 1
    return ErrorGroup(
        fingerprint=same[0].fingerprint,
        job=same[0].job,
        type=None,
        message=None,
        count=len(same),
        first_at=instant(same[0].at),
        last_at=instant(same[-1].at),
        last_run_id=same[-1].run_id,
        states={state.value: count for state, count in states.items() if count},
        histogram=histogram,
    )
