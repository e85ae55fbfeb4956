"""Question what schedules would do: its options, its answer, and the one function that answers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from heapq import merge
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.core.calendar.notation import instant_of
from rota.core.jobs.job import JobDefinition
from rota.core.planning.assumptions import KINDS, Assumptions, Beginning, Present, SimulatedEvent
from rota.core.planning.simulate import simulate
from rota.core.planning.tick import ScheduleState
from rota.core.schedules.backoff import cadence_warnings, retry_policy_of
from rota.core.schedules.diff import Difference
from rota.core.schedules.plan_times import Fire, upcoming
from rota.core.schedules.schedule import Schedule, ScheduleDefinition
from rota.errors import Invalid, UnknownOption
from rota.values.durations import Duration, format_duration, in_micros, parse_duration, span
from rota.values.instants import instant, micros_at, zoned
from rota.values.scope import scope_text

MOST_LISTED = 1_000
_LONGEST = timedelta(days=3_660)
_MOST_DECISIONS = 100_000
_ASSUMED = timedelta(seconds=1)
_OPTIONS = (
    "span", "changes", "documents", "owner", "start", "duration", "fail_every", "outages", "workers", "limit",
)  # fmt: skip
_HINT = 'two times, each with a zone, or from the beginning on: ("+1h", "+3h")'


Moment = datetime | str
"""An instant; as text also an offset from the beginning: `+1h`."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a simulation: from `start` (by default now) for `length`; how long runs last (by default, as those of
    the job did), which fail, when no planner works, and how many plan times to list at most."""

    length: timedelta
    start: int | None = None
    duration: timedelta | None = None
    fail_every: int | None = None
    outages: Sequence[tuple[Moment, Moment]] = ()
    workers: int | None = None
    limit: int = 20


def question_of(length: Duration, options: Mapping[str, Any]) -> Question:
    """Parse and check the options of a question; None stands for a default."""
    for option in options:
        if option not in _OPTIONS:
            raise UnknownOption(option, _OPTIONS, where="a simulation")
    given = {name: value for name, value in options.items() if value is not None}
    spanned = parse_duration(length, "span")
    if spanned > _LONGEST:
        raise Invalid(f"a simulation can span at most {_LONGEST.days} days, not {length}")
    if "start" in given:
        given["start"] = micros_at(zoned(given["start"], "start"))
    if "duration" in given:
        given["duration"] = parse_duration(given["duration"], "duration")
    return Question(length=spanned, **given)


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fate of a plan time; `missed` and `covered` stand for `count` of them, up to `to_at`."""

    kind: str
    """What becomes of it, in one word."""
    plan_time: datetime
    schedule: str = ""
    scope: str | None = None
    """Scope, as `kind/id`."""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempt: int = 0
    reason: str | None = None
    """Why it got no run."""
    count: int = 1
    """Number of plan times that this line stands for."""
    to_at: datetime | None = None


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Answer what schedules would do: what changes in each, their next plan times, and what becomes of those."""

    from_at: datetime
    until_at: datetime
    schedules: tuple[Difference, ...]
    """What changes in each schedule."""
    fires: tuple[Fire, ...]
    """Next plan times, whatever becomes of them."""
    counts: dict[str, int]
    """How many plan times had each fate; `failed` ones are among the runs."""
    events: tuple[SimulatedRun, ...]
    """What becomes of each plan time."""
    unlisted: int = 0
    """Number of plan times that are counted and not listed among the events."""
    truncated: bool = False
    """True if there was too much to decide, and it ends earlier than asked for."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Schedule that a question is about: what it is, and what it shall be. A definition without a job only says when it
    fires; without one, there is nothing to simulate. `present` is what planning would find now."""

    difference: Difference
    schedule: Schedule | None = None
    definition: ScheduleDefinition | None = None
    job: JobDefinition | None = None
    present: Present | None = None


def answer(question: Question, subjects: Sequence[Subject], now: int) -> SimulationReport:
    """Answer what schedules would do: planned by the function that plans, each by itself."""
    start = now if question.start is None else question.start
    until = end = start + in_micros(question.length)
    counts: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    events, differences, left = [], [], _MOST_DECISIONS
    for subject in subjects:
        difference = subject.difference
        if subject.definition is not None and subject.job is not None:
            warnings = cadence_warnings(subject.definition, subject.job, difference.name, now)
            difference = replace(difference, warnings=tuple(warnings))
            if question.length:
                duration, words = _duration(question, subject)
                difference = replace(difference, durations=words)
                result = _simulated(question, subject, duration, start, until, max(1, left))
                counts.update(result.counts)
                left -= sum(result.counts.values())
                end = min(end, result.until)
                events.append([_event(event, difference.name) for event in result.events])
        differences.append(difference)
    listed = tuple(merge(*events, key=lambda event: event.plan_time))[: question.limit]
    fires = merge(*(_fires(subject, start, question.limit) for subject in subjects), key=lambda fire: fire.plan_time)
    return SimulationReport(
        from_at=instant(start),
        until_at=instant(end),
        schedules=tuple(differences),
        fires=tuple(fires)[: question.limit],
        counts=dict(counts),
        events=listed,
        unlisted=decided(counts) - sum(event.count for event in listed),
        truncated=end < until,
    )


def decided(counts: Mapping[str, int]) -> int:
    """Return the number of plan times that are counted."""
    return sum(counts.values()) - counts.get("failed", 0)


def _fires(subject: Subject, after: int, limit: int) -> Sequence[Fire]:
    old = subject.schedule
    if subject.definition is None:
        return ()
    keeps = old is not None and old.next_plan is not None and old.definition.rule == subject.definition.rule
    return upcoming(
        subject.definition,
        subject.difference.name,
        after,
        limit,
        fired=0 if old is None else old.fired,
        next_plan=micros_at(old.next_plan) if keeps and old and old.next_plan else None,
    )


def _duration(question: Question, subject: Subject) -> tuple[timedelta, str]:
    """Return how long a run takes, and in words why: as it was said, or as the job's last runs took."""
    if question.duration is not None:
        return question.duration, f"{format_duration(question.duration)}, as given"
    recent = () if subject.present is None else subject.present.durations
    if not recent:
        return _ASSUMED, f"{format_duration(_ASSUMED)} assumed: the job has no run that ended"
    import statistics  # and with it decimals and fractions: at its first use

    median = timedelta(microseconds=round(statistics.median(recent)))
    runs = "the last run" if len(recent) == 1 else f"the last {len(recent)} runs"
    return median, f"median of {runs}, {span(median)}"


def _simulated(question: Question, subject: Subject, duration: timedelta, start: int, until: int, most: int) -> Any:
    definition, job, present = subject.definition, subject.job, subject.present
    assert definition is not None
    assert job is not None
    fresh = question.start is not None or present is None
    assuming = Assumptions(
        duration=duration,
        fail_every=question.fail_every,
        outages=tuple(outage_of(outage, start) for outage in question.outages),
        workers=question.workers,
        job=job,
        timeout=_timeout(job, definition),
        quotas={} if fresh or present is None else present.quotas,
    )
    return simulate(
        _state_at(subject, start) if fresh else _state_now(subject, start),
        retry_policy_of(definition, job),
        start,
        until,
        assuming,
        beginning=None if fresh else _beginning_now(subject),
        limit=question.limit,
        most=most,
    )


def _state_at(subject: Subject, start: int, *, now: bool = False) -> ScheduleState:
    """Return the state a simulation starts from. `now`: a schedule that follows its last run keeps the plan time that
    is already known."""
    old, definition, name = subject.schedule, subject.definition, subject.difference.name
    assert definition is not None
    times = definition.times(name)
    first = times.next(start) if definition.follows is None else times.next_allowed(start)
    if definition.follows is not None and now and old and definition.rule == old.definition.rule and old.next_plan:
        first = max(first or start, micros_at(old.next_plan))
    return ScheduleState("" if old is None else old.id, name, definition, start, first, 0 if old is None else old.fired)


def _state_now(subject: Subject, now: int) -> ScheduleState:
    """Return the state a simulation that begins now starts from: with what is due, unless it would only begin now."""
    old, definition, present = subject.schedule, subject.definition, subject.present
    assert definition is not None
    assert present is not None
    if old is None or definition.rule != old.definition.rule or old.state not in ("active", "ended"):
        return _state_at(subject, now, now=True)
    return replace(present.state, definition=definition)


def _beginning_now(subject: Subject) -> Beginning:
    """Return what a simulation that begins now finds, and whether the schedule is planned at all."""
    old, definition, present = subject.schedule, subject.definition, subject.present
    assert definition is not None
    assert present is not None
    why, resumes_at = None, None
    if not definition.enabled:
        why = "it is disabled"
    elif old is not None and old.job_paused:
        why = f"its job is {'cancelled' if old.job_cancelled else 'paused'}"
    elif old is not None and old.paused_at is not None:
        why = "it is paused"
        resumes_at = None if old.resume_at is None else micros_at(old.resume_at)
    awaits = present.beginning.awaits if old is not None and definition.rule == old.definition.rule else None
    return replace(present.beginning, awaits=awaits, inactive=why, resumes_at=resumes_at)


def _timeout(job: JobDefinition, definition: ScheduleDefinition) -> timedelta | None:
    own: Any = definition.options.get("timeout")
    return job.timeout if own is None else parse_duration(own)


def _event(event: SimulatedEvent, schedule: str) -> SimulatedRun:
    return SimulatedRun(
        kind="failed" if event.failed else event.kind,
        plan_time=instant(event.plan_time),
        schedule=schedule,
        scope=None if event.scope is None else scope_text(event.scope),
        started_at=None if event.started_at is None else instant(event.started_at),
        finished_at=None if event.finished_at is None else instant(event.finished_at),
        attempt=event.attempt,
        reason=event.reason,
        count=event.count,
        to_at=None if event.to_at is None else instant(event.to_at),
    )


def outage_of(outage: object, start: int) -> tuple[int, int]:
    """Parse an outage: from when until when no planner works."""
    if not isinstance(outage, list | tuple) or len(outage) != 2:
        raise Invalid(f"an outage is a pair, not {outage!r:.80}", hint=_HINT)
    begin, end = (_moment(moment, start) for moment in outage)
    if end < begin:
        raise Invalid("an outage cannot end before it begins")
    return begin, end


def _moment(moment: object, start: int) -> int:
    if isinstance(moment, str) and moment.startswith("+"):
        return start + in_micros(parse_duration(moment[1:]))
    if not isinstance(moment, str | datetime):
        raise Invalid(f"{moment!r:.80} is no time of an outage", hint=_HINT)
    return micros_at(instant_of(moment))
