"""Views of schedules for lists, screens and programs: plain facts, and policies in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from rota.core.calendar.describe import describe
from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit, WhenFull, when_full_of
from rota.core.runs.redaction import concealed
from rota.core.runs.run import Run
from rota.core.schedules.document_shape import ScheduleDocument
from rota.core.schedules.documents import document_of, parse
from rota.core.schedules.plan_times import zone_of
from rota.core.schedules.policies import CatchUp, CatchUpMode, Failure, FailureMode, Overlap, OverlapMode
from rota.core.schedules.recent_runs import Recent, RecentRun
from rota.core.schedules.schedule import Schedule, ScheduleDefinition, ScheduleFacts, define
from rota.core.states import RunState
from rota.values.durations import format_duration

_FACTS = (
    "id", "name", "job", "state", "owner", "revision", "enabled", "paused_at", "paused_by", "pause_reason",
    "resume_at", "job_paused", "job_cancelled", "cursor_at", "next_plan", "awaits", "fired", "tzdata", "trouble",
    "created_at", "updated_at",
)  # fmt: skip
_LATE = timedelta(seconds=10)


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """The last run of a schedule."""

    id: str
    state: RunState
    reason: str | None
    plan_time: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None


class ScheduleView(ScheduleFacts, frozen=True, kw_only=True):
    """A schedule: `rule` is its trigger in words, `definition` the document that would create it.

    `recent` and the percentiles of the durations of those runs are there if `recent` was asked for.
    """

    state: str
    rule: str
    timezone: str
    definition: ScheduleDocument
    """Document that would create it, without its name."""
    last: LastRun | None
    """Its last run; only commands tell it."""
    recent: list[RecentRun] | UnsetType = UNSET
    """Its last runs, the oldest first."""
    p50_duration_ms: int | UnsetType | None = UNSET
    """Half of these runs took at most this long."""
    p95_duration_ms: int | UnsetType | None = UNSET
    """All but one in twenty of these runs took at most this long."""
    created: bool | UnsetType = UNSET
    """Whether a request to create or replace it has created it."""
    warnings: list[str] | UnsetType = UNSET
    """What is allowed in the definition that a request stored, and probably not meant."""


def view(schedule: Schedule, last: Run | None = None) -> dict[str, Any]:
    """Return a schedule as JSON, in the shape of `ScheduleView`."""
    facts = {name: getattr(schedule, name) for name in _FACTS}
    document = document_of(schedule.name, schedule.definition)
    return {
        **msgspec.to_builtins(facts),
        "rule": describe(schedule.definition.rule, schedule.name),
        "timezone": zone_of(schedule.definition),
        "definition": {key: value for key, value in document.items() if key != "name"},
        "last": None if last is None else last_run(last),
        **({} if schedule.recent is None else msgspec.structs.asdict(schedule.recent)),
        **({"created": True} if schedule.created else {}),
        **({"warnings": list(schedule.warnings)} if schedule.warnings else {}),
    }


def concealed_schedule(schedule: Schedule) -> Schedule:
    """Return a schedule without the secrets that its runs have in payload and metadata."""
    return msgspec.structs.replace(schedule, definition=_concealed(schedule.definition))


def shown_document(name: str, definition: ScheduleDefinition) -> dict[str, Any]:
    """Return the document of a schedule for whoever may read the audit log: without secrets."""
    return document_of(name, _concealed(definition))


def _concealed(definition: ScheduleDefinition) -> ScheduleDefinition:
    options = {name: concealed(value) if name == "metadata" else value for name, value in definition.options.items()}
    return msgspec.structs.replace(definition, payload=concealed(definition.payload), options=options)


def schedule_of(plain: Mapping[str, Any]) -> Schedule:
    """Build a schedule from its view. Whoever sent that has checked its document against its job."""
    facts = msgspec.convert(plain, ScheduleFacts)
    parsed = parse({"name": facts.name, **plain["definition"]})
    definition = define(JobDefinition(name=parsed.job), parsed.trigger, parsed.options, name=facts.name, now=None)
    recent = msgspec.convert(plain, Recent) if "recent" in plain else None
    said = {"created": plain.get("created", False), "warnings": tuple(plain.get("warnings", ()))}
    return Schedule(definition=definition, recent=recent, **said, **msgspec.structs.asdict(facts))


def trouble_of(schedule: Schedule, now: datetime) -> str | None:
    """Return the trouble that was noted; or that it is overdue, because no planner knows its scope provider."""
    if schedule.trouble or schedule.state != "active" or schedule.next_plan is None:
        return schedule.trouble
    provider = schedule.definition.provider
    if provider is None or now - schedule.next_plan <= _LATE:
        return None
    return f"overdue: no process with scope provider {provider!r} plans it"


def last_run(run: Run) -> dict[str, Any]:
    took = None if run.started_at is None or run.finished_at is None else run.finished_at - run.started_at
    facts: dict[str, Any] = msgspec.to_builtins(
        {"id": run.id, "state": run.state, "reason": run.reason, "plan_time": run.plan_time,
         "started_at": run.started_at, "finished_at": run.finished_at}
    )  # fmt: skip
    return {**facts, "duration_ms": None if took is None else took // timedelta(milliseconds=1)}


def policies(definition: ScheduleDefinition) -> list[tuple[str, str]]:
    """Describe each policy in a sentence."""
    sentences = []
    if definition.follows is None and definition.awaited is None:
        sentences.append(("catch_up", _catch_up(definition.catch_up)))
    if definition.follows is None:
        sentences.append(("overlap", _overlap(definition.overlap)))
    sentences.append(("failure", _failure(definition.failure)))
    if definition.limit is not None:
        sentences.append(("limit", _limit(definition.limit)))
    return sentences


def _catch_up(policy: CatchUp) -> str:
    window, mode = format_duration(policy.window), policy.mode
    match mode:
        case CatchUpMode.NONE:
            return f"a plan time that is more than {format_duration(policy.grace)} late is missed"
        case CatchUpMode.LATEST:
            return f"of several that are due, the newest runs and covers the others of the last {window}"
        case CatchUpMode.ALL:
            most = f"the newest {policy.keep} of the last {window}, {policy.per_tick} at a time"
            return f"of several that are due, each runs, oldest first: {most}"
        case _:
            assert_never(mode)


def _overlap(policy: Overlap) -> str:
    mode = policy.mode
    match mode:
        case OverlapMode.SKIP:
            return "while a run is going on, plan times are skipped"
        case OverlapMode.ALLOW:
            return "runs may overlap"
        case OverlapMode.CANCEL_PREVIOUS:
            return "a new run stops the one before it"
        case OverlapMode.PARALLEL:
            most = f", {policy.max_overlap} at most" if policy.max_overlap else ""
            return f"runs overlap whatever the job's own limit is{most}"
        case OverlapMode.QUEUE_ONE:
            return "one run waits while another is going on; further plan times are skipped"
        case OverlapMode.QUEUE_ALL:
            return "runs wait for each other"
        case _:
            assert_never(mode)


def _failure(policy: Failure) -> str:
    mode = policy.mode
    match mode:
        case FailureMode.RUN_NEW:
            return "after a failure the next plan time runs as usual"
        case FailureMode.SKIP:
            return "after a failure one plan time is skipped"
        case FailureMode.RETRY:
            most = "as many as the job allows" if policy.max_attempts is None else f"{policy.max_attempts} at most"
            return f"after a failure the next plan time is one more attempt, {most}"
        case FailureMode.BACKOFF:
            return "after failures plan times are skipped for a growing time"
        case FailureMode.HALF_OPEN:
            cooldown = format_duration(policy.cooldown)
            return f"after {policy.threshold} failures in a row one probe runs per {cooldown}, the rest is skipped"
        case FailureMode.PAUSE:
            return "a failure pauses the schedule"
        case _:
            assert_never(mode)


def _limit(limit: Limit) -> str:
    waiting = "" if limit.max_queued is None else f", of those {limit.max_queued} at most"
    return f"{limit.max} at once; one more {_when_full(when_full_of(limit.when_full))}{waiting}"


def _when_full(mode: WhenFull) -> str:
    match mode:
        case WhenFull.QUEUE:
            return "waits"
        case WhenFull.SKIP:
            return "is skipped"
        case WhenFull.REJECT:
            return "is refused"
        case WhenFull.CANCEL_OLDEST:
            return "stops the oldest"
        case _:
            assert_never(mode)
