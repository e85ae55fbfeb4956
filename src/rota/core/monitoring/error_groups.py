"""Error groups: failed runs by the fingerprint of their error, and by job or of all jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

import msgspec

from rota.core.runs.error_fingerprint import lasting
from rota.core.runs.run import Run, RunError
from rota.core.states import RunState
from rota.errors import Invalid, did_you_mean
from rota.values.instants import instant, micros_at
from rota.values.scope import Scope

BUCKETS = 24
MOST_GROUPS = 500
MOST_SEARCHED = 500
"""Most groups whose errors are read to search for a text."""
DAY = timedelta(days=1)
_MOST_PARTS = 50


class GroupOrder(StrEnum):
    """Order of error groups: the one seen last first, or the largest first."""

    NEWEST = "newest"
    COUNT = "count"


Place = tuple[int, datetime, str]
"""Rank, last failure and its run: in descending order."""


class FailedRun(msgspec.Struct, frozen=True):
    """Run that failed, timed out or expired, and when, in microseconds."""

    run_id: str
    state: str
    job: str
    fingerprint: str | None
    at: int


class GroupPart(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one job in an error group that spans several."""

    job: str
    fingerprint: str | None
    count: int
    """Number of runs."""


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Failed runs with the same error. Errors older than fingerprints have none, and form one group of each job.

    Of all jobs together, errors are the same if type, code and message are, wherever they were raised.
    """

    fingerprint: str | None
    job: str
    """Job of the newest run."""
    parts: Sequence[GroupPart] = ()
    """Numbers of runs by job and fingerprint, of the 50 that have most of them."""
    job_count: int = 1
    """Number of jobs with this error."""
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

    def place(self, order: GroupOrder) -> Place:
        """Return the place in the list, which is in descending order."""
        match order:
            case GroupOrder.NEWEST:
                return 0, self.last_at, self.last_run_id
            case GroupOrder.COUNT:
                return self.count, self.last_at, self.last_run_id
            case _:
                assert_never(order)

    def says(self, text: str) -> bool:
        """Return whether its error, as `Type: message`, or one of its jobs contains this text, in any case."""
        wanted = text.casefold()
        said = ": ".join(part for part in (self.type, self.message) if part)
        return any(wanted in place.casefold() for place in (said, *(part.job for part in self.parts)))

    def said_by(self, error: RunError | None, reason: str | None) -> ErrorGroup:
        """Return the group with the type and message of this error; with the run's reason if it has no error."""
        message = reason if error is None else error.message
        return msgspec.structs.replace(self, type=None if error is None else error.type, message=message)


class ErrorGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Error groups, the one seen last first unless asked otherwise."""

    items: Sequence[ErrorGroup]
    since: datetime
    """Beginning of the time range."""
    until: datetime
    """End of the time range."""
    truncated: bool
    """True if there were more failed runs than were read."""
    next_cursor: str | None = None


class GroupQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Question for error groups; `after` is the place of the last group seen."""

    since: datetime | None = None
    until: datetime | None = None
    job: str | None = None
    scope: Scope | None = None
    limit: int = 50
    after: Place | None = None
    all_jobs: bool = False
    order: GroupOrder = GroupOrder.NEWEST


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


def checked_order(text: str) -> GroupOrder:
    """Return the order that this word names."""
    names = [order.value for order in GroupOrder]
    if text not in names:
        raise Invalid(f"sort cannot be {text!r:.80}", hint=did_you_mean(str(text), names))
    return GroupOrder(text)


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


def alike_of(groups: Iterable[ErrorGroup], newest: Mapping[str, Run]) -> dict[str, str]:
    """Return which fingerprints are of the same error, by what the newest run of each group says."""
    first: dict[tuple[str, str | None, str], str] = {}
    alike: dict[str, str] = {}
    for group in groups:
        run = newest.get(group.last_run_id)
        if group.fingerprint is not None and run is not None and run.error is not None:
            told = (run.error.type, run.error.code, lasting(run.error.message))
            alike[group.fingerprint] = first.setdefault(told, group.fingerprint)
    return alike


def grouped(
    runs: Iterable[FailedRun],
    since: int,
    until: int,
    order: GroupOrder = GroupOrder.NEWEST,
    alike: Mapping[str, str] | None = None,
) -> list[ErrorGroup]:
    """Return the groups in order. `alike` says which fingerprints are of the same error, whatever the job: it maps each
    to one of them."""
    groups: dict[tuple[str | None, str | None], list[FailedRun]] = {}
    for run in runs:
        same = None if alike is None or run.fingerprint is None else alike.get(run.fingerprint, run.fingerprint)
        # Errors without a fingerprint may not be the same.
        groups.setdefault((run.job, run.fingerprint) if same is None else (None, same), []).append(run)
    result = [
        _group(sorted(members, key=lambda member: (member.at, member.run_id)), since, until)
        for members in groups.values()
    ]
    return sorted(result, key=lambda group: group.place(order), reverse=True)


def _group(runs: Sequence[FailedRun], since: int, until: int) -> ErrorGroup:
    histogram, states = [0] * BUCKETS, dict.fromkeys(RunState, 0)
    for run in runs:
        histogram[(run.at - since) * BUCKETS // (until - since)] += 1
        states[RunState(run.state)] += 1
    parts = Counter((run.job, run.fingerprint) for run in runs)
    return ErrorGroup(
        fingerprint=runs[-1].fingerprint,
        job=runs[-1].job,
        parts=[
            GroupPart(job=job, fingerprint=fingerprint, count=count)
            for (job, fingerprint), count in parts.most_common(_MOST_PARTS)
        ],
        job_count=len({job for job, _ in parts}),
        type=None,
        message=None,
        count=len(runs),
        first_at=instant(runs[0].at),
        last_at=instant(runs[-1].at),
        last_run_id=runs[-1].run_id,
        states={state.value: count for state, count in states.items() if count},
        histogram=histogram,
    )
