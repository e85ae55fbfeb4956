"""Timeline: attempts and coming plan times in lanes, and whether attempts overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import assert_never

import msgspec

from rota.core.monitoring.counters import HOUR
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


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts and plan times of one schedule, job, worker or queue."""

    name: str
    """Name of the schedule, job, worker or queue."""
    attempts: Sequence[TimelineAttempt] = ()
    """Attempts, the newest first."""
    coming: Sequence[datetime] = ()
    """Plan times to come, the next first."""
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
        match by:
            case Grouping.SCHEDULE:
                return self.schedule
            case Grouping.JOB:
                return self.job
            case Grouping.WORKER:
                return self.worker_id
            case Grouping.QUEUE:
                return self.queue
            case _:
                assert_never(by)


class Upcoming(msgspec.Struct, frozen=True):
    """Schedule that has plan times to come."""

    name: str
    job: str
    definition: ScheduleDefinition
    next_plan: int
    fired: int

    def lane(self, by: Grouping) -> str | None:
        match by:
            case Grouping.SCHEDULE:
                return self.name
            case Grouping.JOB:
                return self.job
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


def timeline_of(query: Asked, bars: Iterable[Bar], upcoming: Iterable[Upcoming], *, more: bool) -> Timeline:
    """Group attempts and plan times into lanes; `more`: not all attempts were read."""
    ordered = sorted({(bar.run_id, bar.no, bar.started_at): bar for bar in bars}.values(), key=_age)
    lanes: dict[str, list[Bar]] = {}
    for bar in ordered[: query.limit]:
        name = bar.lane(query.by)
        if name is not None:
            lanes.setdefault(name, []).append(bar)
    coming = coming_of(query, upcoming)
    return Timeline(
        from_at=instant(query.from_at),
        to_at=instant(query.to_at),
        by=query.by.value,
        lanes=[_lane(name, lanes.get(name, []), coming.get(name, [])) for name in sorted({*lanes, *coming})],
        truncated=more or len(ordered) > query.limit,
    )


def _age(bar: Bar) -> tuple[int, str, int]:
    return -bar.started_at, bar.run_id, -bar.no


def _lane(name: str, bars: Sequence[Bar], coming: Sequence[int]) -> Lane:
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
    room = None if schedule.definition.max_runs is None else schedule.definition.max_runs - schedule.fired
    only_next = [schedule.next_plan] if since <= schedule.next_plan <= until and room != 0 else []
    if schedule.definition.follows is not None or schedule.definition.awaited is not None:
        return only_next  # later ones depend on how long runs take
    try:
        times = schedule.definition.times(schedule.name)
    except BadTrigger:  # a zone unknown here; another process computed the next plan time
        return only_next
    at: int | None = schedule.next_plan
    if schedule.next_plan < since:
        at = times.next(since - 1)
        room = None if room is None else room - 1 - times.count(schedule.next_plan, since - 1)
    most = MOST_FIRES if room is None else min(MOST_FIRES, room)
    coming: list[int] = []
    while at is not None and at <= until and len(coming) < most:
        coming.append(at)
        at = times.next(at)
    return coming
