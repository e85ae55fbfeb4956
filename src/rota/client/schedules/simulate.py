"""Simulate schedules over virtual time; apply documents of schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from rota.core.calendar.describe import describe
from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Gate
from rota.core.planning.assumptions import Assumptions, Beginning, SimulatedEvent
from rota.core.planning.simulate import simulate
from rota.core.planning.simulation_report import SimulatedRun, SimulationOptions, SimulationReport, outage_of
from rota.core.planning.tick import ScheduleState
from rota.core.schedules.backoff import retry_policy_of
from rota.core.schedules.diff import CHANGE, CREATE, DELETE, Difference
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import Schedule, ScheduleDefinition
from rota.errors import DuplicateSchedule, Invalid
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.instants import instant, micros_at
from rota.values.scope import Scope, scope_text

if TYPE_CHECKING:
    from rota.store import Store
    from rota.store.planning.present import Present

_LONGEST = timedelta(days=3_660)
_MOST_EVENTS = 1_000


def state_at(schedule: Schedule, definition: ScheduleDefinition, start: int, *, now: bool) -> ScheduleState:
    """Return the state a simulation starts from. `now`: a schedule that follows its last run keeps the plan time that
    is already known."""
    times = definition.times(schedule.name)
    first = times.next(start) if definition.follows is None else times.next_allowed(start)
    if definition.follows is not None and now and definition.rule == schedule.definition.rule and schedule.next_plan:
        first = max(first or start, micros_at(schedule.next_plan))
    return ScheduleState(schedule.id, schedule.name, definition, start, first, schedule.fired)


def state_now(schedule: Schedule, definition: ScheduleDefinition, present: Present) -> ScheduleState:
    """Return the state a simulation that begins now starts from: with what is due, unless it would only begin now."""
    if definition.rule != schedule.definition.rule or schedule.state in ("disabled", "paused", "job paused"):
        return state_at(schedule, definition, present.now, now=True)
    return msgspec.structs.replace(present.state, definition=definition)


def beginning_now(schedule: Schedule, definition: ScheduleDefinition, present: Present) -> Beginning:
    """Return what a simulation that begins now finds, and whether the schedule is planned at all."""
    why, resumes_at = None, None
    if not definition.enabled:
        why = "it is disabled"
    elif schedule.job_paused:
        why = "its job is paused"
    elif schedule.paused_at is not None:
        why = "it is paused"
        resumes_at = None if schedule.resume_at is None else micros_at(schedule.resume_at)
    awaits = present.beginning.awaits if definition.rule == schedule.definition.rule else None
    return msgspec.structs.replace(present.beginning, awaits=awaits, inactive=why, resumes_at=resumes_at)


def simulate_from(
    state: ScheduleState,
    job: JobDefinition,
    span: Duration,
    options: SimulationOptions,
    *,
    start: int | None = None,
    beginning: Beginning | None = None,
    quotas: Mapping[Scope, tuple[Gate, ...]] | None = None,
) -> SimulationReport:
    """Simulate from a state, and report it; `start` is the state's cursor, unless it is said."""
    start, definition = state.cursor if start is None else start, state.definition
    length = parse_duration(span, "span")
    if length <= timedelta(0):
        raise Invalid(f"the span of a simulation must be positive, not {span}", hint='"6h", "1d", "30d"')
    if length > _LONGEST:
        raise Invalid(f"a simulation can span at most {_LONGEST.days} days, not {span}")
    assuming = Assumptions(
        duration=parse_duration(options.duration),
        fail_every=options.fail_every,
        outages=tuple(outage_of(outage, start) for outage in options.outages),
        workers=options.workers,
        job=job,
        timeout=_timeout(job, definition),
        quotas=quotas or {},
    )
    until = start + in_micros(length)
    result = simulate(
        state, retry_policy_of(definition, job), start, until, assuming, beginning=beginning, limit=_MOST_EVENTS
    )
    return SimulationReport(
        rule=describe(definition.rule, state.name),
        from_at=instant(start),
        until_at=instant(result.until),
        counts=result.counts,
        events=tuple(map(_event, result.events)),
        truncated=result.until < until,
        events_truncated=result.more,
    )


def _timeout(job: JobDefinition, definition: ScheduleDefinition) -> timedelta | None:
    own: Any = definition.options.get("timeout")
    return job.timeout if own is None else parse_duration(own)


def _event(event: SimulatedEvent) -> SimulatedRun:
    return SimulatedRun(
        kind="failed" if event.failed else event.kind,
        plan_time=instant(event.plan_time),
        scope=None if event.scope is None else scope_text(event.scope),
        started_at=None if event.started_at is None else instant(event.started_at),
        finished_at=None if event.finished_at is None else instant(event.finished_at),
        attempt=event.attempt,
        reason=event.reason,
        count=event.count,
        to_at=None if event.to_at is None else instant(event.to_at),
    )


class DocumentPlan(msgspec.Struct, frozen=True):
    """Result of comparing documents with the database. `definitions` are those to store."""

    owner: str
    differences: tuple[Difference, ...]
    definitions: dict[str, ScheduleDefinition]

    @property
    def changing(self) -> Sequence[str]:
        return [difference.name for difference in self.differences if difference.kind in (CREATE, CHANGE)]


async def apply_plan(store: Store, plan: DocumentPlan, actor: str | None) -> None:
    """Apply a plan, one transaction per schedule. Apply it again to finish what was interrupted."""
    acts: dict[str, Callable[[str], Awaitable[object]]] = {
        CREATE: lambda name: _create(store, plan, name, actor),
        CHANGE: lambda name: store.schedules.update(
            name,
            plan.definitions[name],
            Change(note=f"applied by {plan.owner}", actor=actor, details={"owner": plan.owner}),
        ),
        DELETE: lambda name: store.schedules.delete(name, actor),
    }
    for difference in plan.differences:
        if difference.kind in acts:
            await acts[difference.kind](difference.name)


async def _create(store: Store, plan: DocumentPlan, name: str, actor: str | None) -> None:
    try:
        await store.schedules.create(name, plan.definitions[name], plan.owner, actor=actor)
    except DuplicateSchedule:
        # Idempotent: a lost answer is repeated, or two people apply the same file.
        existing = await store.schedules.get(name)
        if existing is None or (existing.owner, existing.definition) != (plan.owner, plan.definitions[name]):
            raise
