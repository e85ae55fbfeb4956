"""Schedules as values: their definition, what the database knows of them, and the checks before they are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

import msgspec

from rota.core.alerts.expectations import Expectations, expectations_of
from rota.core.calendar import rules
from rota.core.calendar.rules import Rule, Times, Window
from rota.core.calendar.triggers import Following, Trigger, validate
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.payload_template import AfterRun, check_template, filled, is_open
from rota.core.jobs.retry import backoff_of, written_backoff
from rota.core.limits.limits import Gate, Limit, WhenFull, gates_of_schedule, limit_of_schedule, measure, rate_of
from rota.core.runs.options import new_run, scope_of
from rota.core.schedules.policies import (
    CatchUp,
    CatchUpMode,
    Failure,
    FailureMode,
    Overlap,
    OverlapMode,
    catch_up_of,
    failure_of,
    overlap_of,
)
from rota.core.schedules.recent_runs import Recent
from rota.errors import Invalid, NotSchedulable, UnknownOption, did_you_mean
from rota.values import json
from rota.values.durations import Duration, format_duration, in_micros, parse_duration
from rota.values.instants import instant, micros_at
from rota.values.json import Json, Limits
from rota.values.names import checked_name
from rota.values.scope import GLOBAL, Scope, scope_text

_MOST_SCOPES = 10_000
_SAMPLE_ID = "00000000-0000-7000-8000-000000000000"
_RUN_OPTIONS = ("queue", "priority", "timeout", "max_attempts", "backoff", "tags", "metadata")

_YEARS = range(1900, 9999)
_ONE_LANE = (GLOBAL,)


class ScheduleDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Definition of a schedule: a job, a rule, a payload, scopes and policies. `options` are those of its runs."""

    job: str
    rule: Rule
    payload: dict[str, Json] = {}
    scopes: tuple[Scope, ...] = ()
    provider: str | None = None
    delay: timedelta = timedelta(0)
    jitter: timedelta = timedelta(0)
    catch_up: CatchUp = CatchUp()
    overlap: Overlap = Overlap()
    failure: Failure = Failure()
    limit: Limit | None = None
    rate: Limit | None = None
    expect: Expectations | None = None
    max_runs: int | None = None
    enabled: bool = True
    options: dict[str, Json] = {}
    description: str = ""

    @property
    def follows(self) -> timedelta | None:
        """The time from the end of its last run to the next plan time; None if a rule names the times."""
        return self.rule.trigger.repeats_after

    def gates(self, schedule_id: str, name: str | None = None, *, unlimited: bool = False) -> tuple[Gate, ...]:
        """Return its own limits as they apply to each of its runs; only the rate if the run is `unlimited`."""
        return gates_of_schedule(schedule_id, None if unlimited else self.limit, self.rate, name)

    @property
    def awaited(self) -> Following | None:
        """The ends of another job's runs that it waits for; None if it waits for none."""
        return self.rule.trigger.awaited

    def times(self, name: str) -> Times:
        return self.shared_times or rules.compiled(self.rule, name)

    @property
    def shared_times(self) -> Times | None:
        """Plan times that all schedules with this definition share; None if they differ by name."""
        return None if rules.differs_by_salt(self.rule) else rules.compiled(self.rule, "")

    @property
    def delay_micros(self) -> int:
        return in_micros(self.delay) if self.delay else 0

    @property
    def window_micros(self) -> int:
        return in_micros(self.catch_up.window)

    @property
    def is_plain(self) -> bool:
        """Return whether a plan time with no live run before it gets a run, whatever happened in the past."""
        may_end = self.follows is not None or self.max_runs is not None
        return not may_end and self.catch_up.runs_only_newest and not self.failure.decides_without_failure

    @property
    def lanes(self) -> tuple[Scope, ...]:
        return self.scopes or _ONE_LANE


CatchUpWord = CatchUpMode | Literal["none", "latest", "all"]
OverlapWord = OverlapMode | Literal["skip", "allow", "cancel_previous", "parallel", "queue_one", "queue_all"]
FailureWord = FailureMode | Literal["run_new", "skip", "retry", "backoff", "half_open", "pause"]
WhenFullWord = WhenFull | Literal["queue", "skip", "reject", "cancel_oldest"]
"""Modes as people write them, so that a type checker finds a misspelled one."""


class ScheduleOptions(TypedDict, total=False):
    """Options of `app.schedule(name, job, trigger, ...)`."""

    payload: dict[str, Any]
    scopes: str | list[Scope | tuple[str, str]]
    delay: Duration
    jitter: Duration
    catch_up: CatchUp | CatchUpWord | dict[str, Any]
    overlap: Overlap | OverlapWord | dict[str, Any]
    failure: Failure | FailureWord | dict[str, Any]
    max_concurrency: int
    when_full: WhenFullWord
    max_queued: int
    rate: str | tuple[int, Duration]
    expect: Expectations | dict[str, Any]
    max_runs: int
    start_at: datetime
    end_at: datetime
    windows: list[Window | str | dict[str, Any]]
    exclude: list[str]
    timezone: str
    enabled: bool
    description: str
    queue: str
    priority: int
    timeout: Duration
    max_attempts: int
    backoff: Any
    tags: list[str]
    metadata: dict[str, Any]


SCHEDULE_OPTIONS = tuple(ScheduleOptions.__annotations__)


SCHEDULE_STATES = ("active", "paused", "job paused", "job cancelled", "disabled", "ended")


FAILING, LATE = "failing", "late"
LOOKED_FOR = (*SCHEDULE_STATES, FAILING, LATE)
"""States, and troubles of an active schedule, that a list may be limited to."""


def checked_state(state: str | None) -> str | None:
    if state is not None and state not in LOOKED_FOR:
        raise Invalid(f"no schedule is {state!r:.80}", hint=did_you_mean(state, LOOKED_FOR))
    return state


class ScheduleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a schedule, besides its definition."""

    id: str
    name: str
    job: str
    owner: str
    revision: int
    """Number of its changes, which its `ETag` holds."""
    enabled: bool
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    resume_at: datetime | None
    """When its pause ends by itself."""
    job_paused: bool
    """Whether its job is paused or cancelled."""
    job_cancelled: bool = False
    """Whether its job is cancelled."""
    cursor_at: datetime
    """Plan times up to here are decided."""
    next_plan: datetime | None
    """Next plan time."""
    awaits: str | None
    """Run whose end it waits for."""
    fired: int
    """Number of its plan times, skipped ones included."""
    tzdata: str
    """Version of the time zone data that it is planned with."""
    trouble: str | None
    """Why it could not be planned."""
    created_at: datetime
    updated_at: datetime


class Schedule(ScheduleFacts, frozen=True, kw_only=True):
    """A schedule as the database knows it. `recent` are its last runs, if they were asked for.

    `created`: the command that returned it was to create or replace it, and has created it. `warnings`: what is allowed
    in the definition that the command stored, and probably not meant.
    """

    definition: ScheduleDefinition
    recent: Recent | None = None
    created: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """`active`, or why it is not."""
        if not self.enabled:
            return "disabled"
        if self.paused_at is not None:
            return "paused"
        if self.job_paused:
            return "job cancelled" if self.job_cancelled else "job paused"
        if self.definition.awaited is not None:
            most = self.definition.max_runs
            return "active" if most is None or self.fired < most else "ended"
        return "active" if self.next_plan is not None or self.awaits is not None else "ended"


def define(
    job: JobDefinition, trigger: Trigger, options: Mapping[str, Any], *, name: str, now: int | None
) -> ScheduleDefinition:
    """Build a checked definition; refuse bad rules, contradictory policies and options that no run of the job takes.

    `now` None: the schedule exists already, so whether it ever fires is not checked again.
    """
    checked_name(name, "the name of a schedule")
    for option in options:
        if option not in SCHEDULE_OPTIONS:
            raise UnknownOption(option, SCHEDULE_OPTIONS, where=f"schedule {name!r}")
    if not job.schedulable:
        raise NotSchedulable(job.name)
    validate(trigger)
    if isinstance(trigger, Following) and trigger.delay:
        trigger, options = msgspec.structs.replace(trigger, delay=timedelta(0)), {**options, "delay": trigger.delay}
    rule = rule_of(trigger, options)
    catch_up = catch_up_of(options.get("catch_up"))
    definition = ScheduleDefinition(
        job=job.name,
        rule=rule,
        payload=_payload(options.get("payload", {}), after=trigger.awaited is not None),
        scopes=_scopes(options.get("scopes", ())),
        provider=options["scopes"] if isinstance(options.get("scopes"), str) else None,
        delay=_whole_seconds(options.get("delay", "0s"), "delay"),
        jitter=_whole_seconds(options.get("jitter", "0s"), "jitter"),
        catch_up=catch_up,
        overlap=_overlap(options.get("overlap"), catch_up, trigger),
        failure=failure_of(options.get("failure")),
        limit=limit_of_schedule(options),
        rate=rate_of(options.get("rate")),
        expect=None if options.get("expect") is None else expectations_of(options["expect"]),
        max_runs=_max_runs(options.get("max_runs")),
        enabled=_flag(options.get("enabled", True)),
        options=_run_options(job, options),
        description=str(options.get("description", "")),
    )
    _refuse_contradictions(definition, job, options)
    if now is not None:
        rules.check(rule, name, now)
    return definition


def _overlap(value: Any, catch_up: CatchUp, trigger: Trigger) -> Overlap:
    """Parse the overlap policy. A trigger that must lose no plan time queues by default."""
    if value is None and trigger.loses_no_time:
        return Overlap(mode=OverlapMode.QUEUE_ALL)
    return overlap_of(value, catch_up)


def rule_of(trigger: Trigger, options: Mapping[str, Any]) -> Rule:
    """Build a rule from a trigger and the options that bound it."""
    zone = str(options.get("timezone") or trigger.own_zone or "UTC")
    start_at = _micros(options.get("start_at"), "start_at")
    return Rule(
        trigger=trigger.started(start_at),
        start_at=start_at,
        end_at=_micros(options.get("end_at"), "end_at"),
        windows=tuple(rules.window_of(window) for window in _list(options.get("windows", ()), "windows")),
        exclude=tuple(checked_name(date, "exclude") for date in _list(options.get("exclude", ()), "exclude")),
        timezone=zone,
    )


def _list(value: object, option: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise Invalid(f"{option} must be a list, not {value!r:.80}")
    return tuple(value)


def _micros(at: object, option: str) -> int | None:
    if at is None:
        return None
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise Invalid(f"{option} must be a datetime with a zone, not {at!r}")
    if at.year not in _YEARS:  # converted to UTC, it might be outside of datetime's range
        raise Invalid(f"{option} must lie between {_YEARS.start} and {_YEARS.stop}, not in {at.year}")
    return micros_at(at)


def _payload(payload: object, *, after: bool) -> dict[str, Json]:
    if not isinstance(payload, Mapping):
        raise Invalid(f"payload must be an object, not {payload!r:.80}")
    plain: dict[str, Json] = msgspec.json.decode(json.encode(dict(payload), Limits()))
    check_template(plain, after=after)
    return plain


def _scopes(value: object) -> tuple[Scope, ...]:
    if isinstance(value, str):
        checked_name(value, "scope provider")
        return ()
    if not isinstance(value, list | tuple) or len(value) > _MOST_SCOPES:
        raise Invalid(f"scopes must be a provider's name, or at most {_MOST_SCOPES} pairs (kind, id)")
    if isinstance(value, list) and not value:  # "none" to some readers, "the global one" to others
        raise Invalid(
            "scopes is an empty list", hint="leave it out for one run without a scope; a provider may have none"
        )
    return checked_scopes(value)


def checked_scopes(scopes: Iterable[Any]) -> tuple[Scope, ...]:
    checked = tuple(scope_of(scope) for scope in scopes)
    if len(checked) > _MOST_SCOPES:
        raise Invalid(
            f"a schedule has at most {_MOST_SCOPES} scopes, not {len(checked)}", hint="make several schedules"
        )
    twice, times = Counter(checked).most_common(1)[0] if checked else (GLOBAL, 1)
    if times > 1:
        raise Invalid(f"scope {scope_text(twice)} is named {times} times")
    return checked


def _whole_seconds(value: Duration, option: str) -> timedelta:
    span = parse_duration(value, option)
    if span.microseconds:
        raise Invalid(f"{option} must be whole seconds, not {value!r}")
    return span


def _max_runs(value: object) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise Invalid(f"max_runs must be a whole number from 1 up, not {value!r}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"enabled must be true or false, not {value!r}")
    return value


def _run_options(job: JobDefinition, options: Mapping[str, Any]) -> dict[str, Json]:
    """Return the options of its runs as stored, with durations as text; refuse what no run of the job could have."""
    run_options = {name: options[name] for name in _RUN_OPTIONS if name in options}
    new_run(msgspec.structs.replace(job, enabled=True), "", "{}", run_options)
    if "timeout" in run_options:
        run_options["timeout"] = format_duration(parse_duration(run_options["timeout"]))
    if "backoff" in run_options:
        run_options["backoff"] = written_backoff(backoff_of(run_options["backoff"]))
    plain: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(run_options))
    return plain


def _refuse_contradictions(definition: ScheduleDefinition, job: JobDefinition, options: Mapping[str, Any]) -> None:
    if definition.follows is not None:
        for name in ("catch_up", "overlap"):
            if name in options:
                raise Invalid(f"{name} means nothing with a trigger that waits for the last run to end")
        if definition.provider or len(definition.scopes) > 1:
            raise Invalid("`after` follows one run: it cannot have several scopes", hint="one schedule for each scope")
    if definition.awaited is not None:
        _refuse_unused_when_awaiting(definition, options)
    rule = definition.rule
    if rule.timezone != (rule.trigger.own_zone or rule.timezone) and not rule.windows and not rule.exclude:
        hint = f"it is that of windows and excluded dates; the expression has its own: cron(…, {rule.timezone!r})"
        raise Invalid("timezone means nothing to a cron expression", hint=hint)
    if definition.overlap.cancels and not job.cancel.supported:
        raise Invalid(f"overlap cancel_previous needs a job that can be cancelled, and {job.name!r} cannot")
    if definition.failure.retries and "max_attempts" in options:
        raise Invalid("with failure retry, a run has one attempt", hint="failure = {mode = 'retry', max_attempts = …}")
    if not job.repeatable and definition.max_runs != 1 and rule.trigger.only_at is None:
        raise Invalid(f"job {job.name!r} is not repeatable", hint="a trigger `once`, or max_runs=1")


def _refuse_unused_when_awaiting(definition: ScheduleDefinition, options: Mapping[str, Any]) -> None:
    """Refuse options that mean nothing when the ends of another job's runs are followed."""
    if definition.provider is not None:
        raise Invalid("a provider of scopes is not asked when another job's run ends", hint="name the scopes")
    if "catch_up" in options:
        raise Invalid("catch_up means nothing with a trigger that waits for the ends of another job")


def sample(definition: ScheduleDefinition, name: str) -> dict[str, Json] | None:
    """Return a payload as its runs will have it, for the checks that need one; None if it cannot be known yet."""
    if definition.awaited is not None and is_open(definition.payload):
        return None
    after = None if definition.awaited is None else AfterRun(_SAMPLE_ID, "succeeded", None)
    return filled(definition.payload, name, definition.lanes[0], 0, after)  # type: ignore[no-any-return]


def options_of(definition: ScheduleDefinition) -> dict[str, Any]:
    """Return the options with which `define` makes this definition, so that some can be changed."""
    rule, limit = definition.rule, definition.limit
    usual = _overlap(None, definition.catch_up, rule.trigger)
    options: dict[str, Any] = {
        "payload": definition.payload,
        "scopes": definition.provider or list(definition.scopes) or None,
        "delay": definition.delay,
        "jitter": definition.jitter,
        "catch_up": None if definition.catch_up == CatchUp() else definition.catch_up,
        "overlap": None if definition.overlap == usual else definition.overlap,
        "failure": None if definition.failure == Failure() else definition.failure,
        "max_concurrency": limit and limit.max,
        "when_full": limit and limit.when_full,
        "max_queued": limit and limit.max_queued,
        "rate": definition.rate and measure(definition.rate.max, definition.rate.period).replace(" per ", "/"),
        "expect": definition.expect,
        "max_runs": definition.max_runs,
        "start_at": None if rule.start_at is None else instant(rule.start_at),
        "end_at": None if rule.end_at is None else instant(rule.end_at),
        "windows": list(rule.windows),
        "exclude": list(rule.exclude),
        "timezone": None if rule.timezone == (rule.trigger.own_zone or "UTC") else rule.timezone,
        "enabled": definition.enabled,
        "description": definition.description,
        **definition.options,
    }
    return {name: value for name, value in options.items() if value is not None}


class NewSchedule(msgspec.Struct, frozen=True):
    """The schedule that is created together with a job."""

    name: str
    definition: ScheduleDefinition


class OwnSchedule(msgspec.Struct, frozen=True):
    """The schedule that belongs to a job, as it is to be; `expected` as it was read, None if there was none."""

    name: str
    definition: ScheduleDefinition
    expected: ScheduleDefinition | None


class ScheduleMoved(Exception):
    """The job's own schedule was changed, created or deleted since it was read."""


def own_owner(job: str) -> str:
    """Return the owner of the schedule that belongs to a job."""
    return f"job:{job}"
