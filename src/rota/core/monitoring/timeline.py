"""Timeline: attempts and coming plan times in lanes, and whether attempts overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import assert_never

import msgspec

from rota.core.monitoring.counters import HOUR
from rota.core.schedules.plan_times import plan_times
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import BadTrigger, Invalid, did_you_mean
from rota.values.instants import instant, maybe_instant, micros_at, zoned

MOST_ATTEMPTS = 5_000
MOST_FIRES = 100
"""Most plan times to come that are shown of one schedule."""
_FURTHEST = 400 * 24 * HOUR


class Grouping(StrEnum):
    """Meaning of a lane: one schedule, job, worker or queue."""

    SCHEDULE = "schedule"
    JOB = "job"
    WORKER = "worker"
    QUEUE = "queue"

    @property
    def only_scheduled(self) -> bool:
        """Return whether runs without a schedule are in no lane."""
        match self:
            case Grouping.SCHEDULE:
                return True
            case Grouping.JOB | Grouping.WORKER | Grouping.QUEUE:
                return False
            case _:
                assert_never(self)

    @property
    def has_coming(self) -> bool:
        """Return whether lanes have plan times to come; nobody knows on which worker they will run."""
        match self:
            case Grouping.SCHEDULE | Grouping.JOB:
                return True
            case Grouping.WORKER | Grouping.QUEUE:
                return False
            case _:
                assert_never(self)


BY = tuple(grouping.value for grouping in Grouping)


class TimelineAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """Attempt in a timeline."""

    run_id: str
    no: int
    """Number of the attempt."""
    job: str
    state: str
    """Outcome or, while it lasts, `running`, `cancelling` or `waiting`."""
    worker_id: str | None
    started_at: datetime
    ended_at: datetime | None


class Gap(msgspec.Struct, frozen=True, kw_only=True, rename={"from_at": "from", "to_at": "to"}):
    """Plan times of a schedule that did not run."""

    kind: str
    """`skipped` by a policy or a pause, or `missed` because nothing planned at that time."""
    from_at: datetime
    """First of the plan times."""
    to_at: datetime
    """Last of the plan times."""
    count: int
    """Number of plan times."""
    reason: str | None = None
    run_id: str | None = None
    """Id of the skipped run, if it is a single one that has a run."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts and plan times of one schedule, job, worker or queue."""

    name: str
    """Name of the schedule, job, worker or queue."""
    attempts: Sequence[TimelineAttempt] = ()
    """Attempts, the newest first."""
    coming: Sequence[datetime] = ()
    """Plan times to come, the next first."""
    gaps: Sequence[Gap] = ()
    """Plan times that did not run, the earliest first."""
    overlaps: bool = False
    """True if two attempts overlap in time."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True, rename={"from_at": "from", "to_at": "to"}):
    """Timeline of attempts."""

    from_at: datetime
    to_at: datetime
    by: str
    """What a lane stands for: `schedule`, `job`, `worker` or `queue`."""
    lanes: Sequence[Lane] = ()
    """Lanes, by name."""
    truncated: bool = False
    """True if there are older attempts that are left out."""
    complete_from: datetime | None = None
    """From here on no attempt is left out; null if that is so of the whole range."""


class Asked(msgspec.Struct, frozen=True):
    """Requested range in microseconds, grouping and limit."""

    from_at: int
    to_at: int
    by: Grouping
    limit: int


class Bar(msgspec.Struct, frozen=True):
    """Attempt as stored; instants in microseconds."""

    run_id: str
    no: int
    state: str
    worker_id: str | None
    started_at: int
    ended_at: int | None
    job: str
    queue: str
    schedule: str | None

    def lane(self, by: Grouping) -> str | None:
        return _lane_of(self, self.worker_id, by)


class SkippedRun(msgspec.Struct, frozen=True):
    """Skipped run as stored; `at` is its plan time, or when it was skipped."""

    run_id: str
    at: int
    reason: str | None
    job: str
    queue: str
    schedule: str | None

    def lane(self, by: Grouping) -> str | None:
        return _lane_of(self, None, by)


class UnrunRange(msgspec.Struct, frozen=True):
    """Range of plan times of a schedule that have no runs, as stored."""

    schedule: str
    job: str
    from_at: int
    to_at: int
    kind: str
    reason: str
    count: int

    def lane(self, by: Grouping) -> str | None:
        return _lane_without_run(by, self.schedule, self.job)


class Upcoming(msgspec.Struct, frozen=True):
    """Schedule that has plan times to come."""

    name: str
    job: str
    definition: ScheduleDefinition
    next_plan: int
    fired: int

    def lane(self, by: Grouping) -> str | None:
        return _lane_without_run(by, self.name, self.job)


def _lane_without_run(by: Grouping, schedule: str, job: str) -> str | None:
    match by:
        case Grouping.SCHEDULE:
            return schedule
        case Grouping.JOB:
            return job
        case Grouping.WORKER | Grouping.QUEUE:
            return None
        case _:
            assert_never(by)


def asked_of(from_at: datetime | None, to_at: datetime | None, by: str, limit: int, now: int) -> Asked:
    """Validate the request; by default the last hour."""
    if by not in BY:
        raise Invalid(f"by cannot be {by!r:.80}", hint=did_you_mean(str(by), BY))
    if not 1 <= limit <= MOST_ATTEMPTS:
        raise Invalid(f"limit must be 1 to {MOST_ATTEMPTS}, not {limit}")
    to = now if to_at is None else _micros(to_at, "to", now)
    since = to - HOUR if from_at is None else _micros(from_at, "from", now)
    if since > to:
        raise Invalid("from is after to")
    return Asked(since, to, Grouping(by), limit)


def _micros(at: datetime, what: str, now: int) -> int:
    return min(max(micros_at(zoned(at, what)), 0), now + _FURTHEST)


def _lane_of(run: Bar | SkippedRun, worker_id: str | None, by: Grouping) -> str | None:
    match by:
        case Grouping.SCHEDULE:
            return run.schedule
        case Grouping.JOB:
            return run.job
        case Grouping.WORKER:
            return worker_id
        case Grouping.QUEUE:
            return run.queue
        case _:
            assert_never(by)


def timeline_of(
    query: Asked,
    bars: Iterable[Bar],
    upcoming: Iterable[Upcoming],
    skipped: Iterable[SkippedRun] = (),
    ranges: Iterable[UnrunRange] = (),
    *,
    unread_until: int | None = None,
) -> Timeline:
    """Group attempts and plan times into lanes. Runs that were created before `unread_until` were not all read."""
    ordered = sorted({(bar.run_id, bar.no, bar.started_at): bar for bar in bars}.values(), key=_age)
    lanes: dict[str, list[Bar]] = {}
    for bar in ordered[: query.limit]:
        name = bar.lane(query.by)
        if name is not None:
            lanes.setdefault(name, []).append(bar)
    coming, gaps = coming_of(query, upcoming), _gaps_of(query, skipped, ranges)
    left_out = [ordered[query.limit].started_at] if len(ordered) > query.limit else []
    left_out += [] if unread_until is None else [unread_until]
    return Timeline(
        from_at=instant(query.from_at),
        to_at=instant(query.to_at),
        by=query.by.value,
        lanes=[
            _lane(name, lanes.get(name, []), coming.get(name, []), gaps.get(name, []))
            for name in sorted({*lanes, *coming, *gaps})
        ],
        truncated=bool(left_out),
        complete_from=instant(min(max(left_out), query.to_at)) if left_out else None,
    )


def _gaps_of(query: Asked, skipped: Iterable[SkippedRun], ranges: Iterable[UnrunRange]) -> Mapping[str, Sequence[Gap]]:
    lanes: dict[str, list[Gap]] = {}
    for run in skipped:
        at, name = instant(run.at), run.lane(query.by)
        if name is not None:
            gap = Gap(kind="skipped", from_at=at, to_at=at, count=1, reason=run.reason, run_id=run.run_id)
            lanes.setdefault(name, []).append(gap)
    for stretch in ranges:
        name = stretch.lane(query.by)
        if name is not None:
            first, last = instant(stretch.from_at), instant(stretch.to_at)
            gap = Gap(kind=stretch.kind, from_at=first, to_at=last, count=stretch.count, reason=stretch.reason or None)
            lanes.setdefault(name, []).append(gap)
    return {name: sorted(gaps, key=lambda gap: (gap.from_at, gap.to_at)) for name, gaps in lanes.items()}


def _age(bar: Bar) -> tuple[int, str, int]:
    return -bar.started_at, bar.run_id, -bar.no


def _lane(name: str, bars: Sequence[Bar], coming: Sequence[int], gaps: Sequence[Gap]) -> Lane:
    return Lane(
        name=name,
        attempts=[
            TimelineAttempt(
                run_id=bar.run_id,
                no=bar.no,
                job=bar.job,
                state=bar.state,
                worker_id=bar.worker_id,
                started_at=instant(bar.started_at),
                ended_at=maybe_instant(bar.ended_at),
            )
            for bar in bars
        ],
        coming=[instant(at) for at in coming],
        gaps=gaps,
        overlaps=overlap(bars),
    )


def overlap(bars: Iterable[Bar]) -> bool:
    """Return whether two of the attempts overlap in time."""
    last = 0
    for bar in sorted(bars, key=lambda attempt: (attempt.started_at, attempt.ended_at or 2**63)):
        if bar.started_at < last:
            return True
        last = max(last, 2**63 if bar.ended_at is None else bar.ended_at)
    return False


def coming_of(query: Asked, upcoming: Iterable[Upcoming]) -> Mapping[str, Sequence[int]]:
    """Return the plan times to come by lane, within the range; workers and queues have none."""
    lanes: dict[str, list[int]] = {}
    for schedule in upcoming:
        name = schedule.lane(query.by)
        if name is not None and (times := _times(schedule, query.from_at, query.to_at)):
            lanes.setdefault(name, []).extend(times)
    return {name: sorted(times) for name, times in lanes.items()}


def _times(schedule: Upcoming, since: int, until: int) -> list[int]:
    times, _ = coming_times(schedule, since, until, MOST_FIRES, overdue=False)
    return times


def coming_times(
    schedule: Upcoming, since: int, until: int, most: int, *, overdue: bool = True
) -> tuple[list[int], int]:
    """Return the first plan times of a schedule from `since` up to `until`, and how many there are in all.

    `overdue`: the next one counts although it is before `since`, because planning has not decided it yet.
    """
    room = None if schedule.definition.max_runs is None else schedule.definition.max_runs - schedule.fired
    is_late = overdue and schedule.next_plan < since
    is_next = (is_late or since <= schedule.next_plan) and schedule.next_plan <= until and room != 0
    only_next = [schedule.next_plan] if is_next else []
    if schedule.definition.follows is not None or schedule.definition.awaited is not None:
        return only_next, len(only_next)  # later ones depend on how long runs take
    try:
        times = schedule.definition.times(schedule.name)
    except BadTrigger:  # a zone unknown here; another process computed the next plan time
        return only_next, len(only_next)
    first = only_next if is_late else []
    planned = plan_times(times, schedule.next_plan - 1, since - 1, most, room, until)
    total = times.count(max(schedule.next_plan, since) - 1, until)
    if room is not None:
        total = min(total, max(0, room - times.count(schedule.next_plan - 1, since - 1)))
    return [*first, *planned][:most], len(first) + total


class WaitingRun(msgspec.Struct, frozen=True):
    """Run that waits for its time; the instant in microseconds."""

    at: int
    run_id: str
    attempt: int
    job: str
    queue: str
    schedule: str | None
