"""Overview page: live runs, the last day, what needs attention, and what is to begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from rota.core.calendar.describe import describe
from rota.core.monitoring.attention import Attention
from rota.core.monitoring.counters import LastDay
from rota.core.monitoring.timeline import Upcoming, WaitingRun, coming_times
from rota.core.schedules.plan_times import zone_of
from rota.errors import BadTrigger, Invalid
from rota.values.durations import Duration, format_duration, in_micros, parse_duration
from rota.values.instants import instant

MOST_LISTED = 1_000
MOST_EACH = 100
LONGEST_PERIOD = timedelta(days=31)


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that have not ended."""

    running: int = 0
    cancelling: int = 0
    """Runs that were asked to stop and have not yet."""
    queued: int = 0
    scheduled: int = 0
    waiting: int = 0
    """Runs that wait for external work."""
    oldest_queued_at: datetime | None = None
    """Since when the run that waits longest could be claimed."""
    capped: bool = False
    """True if there are more queued or scheduled runs than were counted."""


class Late(msgspec.Struct, frozen=True):
    """Numbers of what is late."""

    runs: int
    """Runs that are queued more than 10 s after they were due."""
    schedules: int
    """Schedules that are not planned more than 10 s after they were due."""


class WorkerCounts(msgspec.Struct, frozen=True):
    """Numbers of workers and slots."""

    alive: int
    """Workers that send heartbeats."""
    stale: int
    """Workers that are silent for longer than a lease, without a shutdown."""
    slots: int
    """Slots of all workers that are alive."""
    busy: int
    """Slots in use."""


class NextRun(msgspec.Struct, frozen=True, kw_only=True):
    """Next plan time of a schedule."""

    schedule: str
    job: str
    at: datetime
    """When it is due."""
    zone: str
    rule: str


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the overview page."""

    at: datetime
    """When it was computed."""
    live: Live
    """Runs that have not ended."""
    late: Late
    last_day: LastDay
    """Runs that ended within the last 24 hours."""
    workers: WorkerCounts
    """Numbers of workers and slots."""
    schedules: dict[str, int]
    """Numbers of schedules by state."""
    attention: Sequence[Attention] = ()
    attention_count: int = 0
    """Number of all items that are not snoozed."""
    attention_counts: dict[str, int] = {}
    """Numbers of these by kind."""
    snoozed: int = 0
    """Number of items that are snoozed."""
    next_fires: Sequence[NextRun] = ()
    """The next plan times of all schedules."""


class UpcomingRun(msgspec.Struct, frozen=True, kw_only=True):
    """Run that is to begin, at a plan time or after a delay."""

    at: datetime
    """When it may begin; in the past, if it is late."""
    job: str
    queue: str | None
    """The queue of a run that exists; None for a plan time."""
    schedule: str | None
    run_id: str | None
    """The run, if it exists already: it was delayed, or waits for its retry."""
    attempt: int
    """How often it was tried before."""
    rule: str | None
    """Rule of the schedule, in words."""
    zone: str | None
    """Time zone of the schedule."""
    scopes: int | None
    """Number of runs at the plan time, one for each scope; None if a provider names the scopes then."""
    more: int
    """Number of later plan times of this schedule within the period that are not listed."""


class UpcomingRuns(msgspec.Struct, frozen=True, kw_only=True, rename={"from_at": "from", "to_at": "to"}):
    """Runs that are to begin within a period."""

    from_at: datetime
    to_at: datetime
    items: Sequence[UpcomingRun]
    """The next first."""
    total: int
    """Number of plan times and waiting runs in the period, as far as they were read."""
    truncated: bool
    """True if there are more than were read or listed."""


def period_of(within: Duration) -> int:
    """Validate the length of the period, and return it in microseconds."""
    span = parse_duration(within, "within")
    if not timedelta(0) < span <= LONGEST_PERIOD:
        raise Invalid(f"within must be more than 0s and at most {format_duration(LONGEST_PERIOD)}, not {within}")
    return in_micros(span)


def upcoming_runs(
    now: int,
    until: int,
    schedules: Iterable[Upcoming],
    runs: Iterable[WaitingRun],
    *,
    each: int,
    limit: int,
    more: bool,
) -> UpcomingRuns:
    """List what is to begin up to `until`: at most `limit` items, `each` of one schedule. `more`: not all was read."""
    items = [_of_run(run) for run in runs]
    total = len(items)
    for schedule in schedules:
        planned, count = _of_schedule(schedule, now, until, each)
        items += planned
        total += count
    items.sort(key=lambda item: (item.at, item.job, item.schedule or "", item.run_id or ""))
    return UpcomingRuns(
        from_at=instant(now),
        to_at=instant(until),
        items=items[:limit],
        total=total,
        truncated=more or len(items) > limit,
    )


def _of_run(run: WaitingRun) -> UpcomingRun:
    return UpcomingRun(
        at=instant(run.at), job=run.job, queue=run.queue, schedule=run.schedule, run_id=run.run_id,
        attempt=run.attempt, rule=None, zone=None, scopes=1, more=0,
    )  # fmt: skip


def _of_schedule(schedule: Upcoming, now: int, until: int, each: int) -> tuple[list[UpcomingRun], int]:
    """Return the first plan times of a schedule, and how many it has in all."""
    definition, delay = schedule.definition, schedule.definition.delay_micros
    times, count = coming_times(schedule, now - delay, until - delay, each)
    try:
        rule = describe(definition.rule, schedule.name)
    except BadTrigger:  # a zone unknown here; another process computed the next plan time
        rule = None
    items = [
        UpcomingRun(
            at=instant(at + delay), job=schedule.job, queue=None, schedule=schedule.name, run_id=None, attempt=0,
            rule=rule, zone=zone_of(definition),
            scopes=None if definition.provider is not None else len(definition.lanes),
            more=count - len(times) if place == len(times) else 0,
        )
        for place, at in enumerate(times, 1)
    ]  # fmt: skip
    return items, count
