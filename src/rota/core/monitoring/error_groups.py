"""Error groups: failed runs by job and by the fingerprint of their error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from rota.core.runs.run import Run, RunError
from rota.core.states import RunState
from rota.errors import Invalid
from rota.values.instants import instant, micros_at
from rota.values.scope import Scope

BUCKETS = 24
MOST_GROUPS = 500
DAY = timedelta(days=1)


class FailedRun(msgspec.Struct, frozen=True):
    """Run that failed, timed out or expired, and when, in microseconds."""

    run_id: str
    state: str
    job: str
    fingerprint: str | None
    at: int


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Failed runs of one job with the same error. Errors older than fingerprints have none, and form one group."""

    fingerprint: str | None
    job: str
    type: str | None
    """Type of the newest error."""
    message: str | None
    """Message of the newest error."""
    count: int
    """Number of runs."""
    first_at: datetime
    last_at: datetime
    last_run_id: str
    """Id of the newest run."""
    states: dict[str, int]
    """Numbers of runs by state."""
    histogram: Sequence[int]
    """Numbers of runs in 24 equal parts of the time range."""

    @property
    def place(self) -> tuple[datetime, str]:
        """Place in the list, which is in descending order."""
        return self.last_at, self.last_run_id

    def follows(self, place: tuple[datetime, str] | None) -> bool:
        """Return whether the group is after this place in the list."""
        return place is None or self.place < place

    def said_by(self, error: RunError | None, reason: str | None) -> ErrorGroup:
        """Return the group with the type and message of this error; with the run's reason if it has no error."""
        message = reason if error is None else error.message
        return msgspec.structs.replace(self, type=None if error is None else error.type, message=message)


class ErrorGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Error groups, the one seen last first."""

    items: Sequence[ErrorGroup]
    since: datetime
    """Beginning of the time range."""
    until: datetime
    """End of the time range."""
    truncated: bool
    """True if there were more failed runs than were read."""
    next_cursor: str | None = None


class GroupQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Question for error groups; `after` is the last group seen, by its last failure and run."""

    since: datetime | None = None
    until: datetime | None = None
    job: str | None = None
    scope: Scope | None = None
    limit: int = 50
    after: tuple[datetime, str] | None = None


class FoundGroups(msgspec.Struct, frozen=True):
    """Error groups between two instants, without messages, and the newest run of each that is still there.

    `more`: there are groups after these.
    """

    groups: Sequence[ErrorGroup]
    newest: Mapping[str, Run]
    since: int
    until: int
    truncated: bool
    more: bool


def checked_window(since: datetime | None, until: datetime | None, now: datetime) -> tuple[int, int]:
    """Validate the time range, by default the last day; in microseconds."""
    for at in (since, until):
        if at is not None and at.tzinfo is None:
            raise Invalid(f"{at.isoformat()} has no zone", hint="give an aware datetime: datetime.now(UTC)")
    end = micros_at(until or now)
    begin = max(0, end - DAY // timedelta(microseconds=1) if since is None else micros_at(since))
    if begin >= end:
        raise Invalid("since must be before until")
    return begin, end


def grouped(runs: Iterable[FailedRun], since: int, until: int) -> list[ErrorGroup]:
    groups: dict[tuple[str, str | None], list[FailedRun]] = {}
    for run in runs:
        groups.setdefault((run.job, run.fingerprint), []).append(run)
    result = [
        _group(sorted(members, key=lambda member: (member.at, member.run_id)), since, until)
        for members in groups.values()
    ]
    return sorted(result, key=lambda group: group.place, reverse=True)


def _group(runs: Sequence[FailedRun], since: int, until: int) -> ErrorGroup:
    histogram, states = [0] * BUCKETS, dict.fromkeys(RunState, 0)
    for run in runs:
        histogram[(run.at - since) * BUCKETS // (until - since)] += 1
        states[RunState(run.state)] += 1
    return ErrorGroup(
        fingerprint=runs[0].fingerprint,
        job=runs[0].job,
        type=None,
        message=None,
        count=len(runs),
        first_at=instant(runs[0].at),
        last_at=instant(runs[-1].at),
        last_run_id=runs[-1].run_id,
        states={state.value: count for state, count in states.items() if count},
        histogram=histogram,
    )
