"""Explain why a plan time of a schedule did or did not, will or will not run, in sentences and as facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.core.calendar import rules
from rota.core.calendar.describe import describe
from rota.core.calendar.rules import Rule
from rota.core.ledger.occurrences import PlannedRun, summary_of
from rota.core.ledger.verify import UNNAMED, History, Range, Stretch
from rota.core.planning.overlap_and_failure import Create, Lane, Skip, decide
from rota.core.planning.tick import ScheduleState, eligible
from rota.core.runs.run import RunError
from rota.core.schedules.revisions import Inactivity
from rota.core.schedules.schedule import Schedule
from rota.core.states import RunState
from rota.values.actor import is_policy
from rota.values.durations import age, in_micros, span
from rota.values.instants import instant, micros_at
from rota.values.json import Json
from rota.values.scope import Scope, scope_text

_SHOWN = 5
_SHOWN_UNSUCCESSFUL = 50
_LATE = 10_000_000


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation of a run or a plan time: `verdict` is one word, `words` are sentences, `facts` are for programs."""

    verdict: str
    words: tuple[str, ...]
    facts: dict[str, Json]


class PlanTimeRun(msgspec.Struct, frozen=True):
    """Run of the plan time in question; `error` is that of its last attempt."""

    run: PlannedRun
    run_at: int
    started_at: int | None
    finished_at: int | None
    cancelled_by: str | None = None
    error: RunError | None = None


class PlanTimeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about one instant of a schedule; times in microseconds. `planners`: number of live processes that plan."""

    at: int
    now: int
    schedule: Schedule
    history: History
    runs: Sequence[PlanTimeRun]
    covering: Sequence[PlannedRun]
    ranges: Sequence[Range]
    lanes: Mapping[Scope, Lane]
    max_attempts: int
    next_at: int | None
    provider: str | None
    planners: int

    @property
    def standing(self) -> ScheduleState:
        own = self.schedule
        plan = None if own.next_plan is None else micros_at(own.next_plan)
        return ScheduleState(own.id, own.name, own.definition, micros_at(own.cursor_at), plan, own.fired)


def newest_plan(history: History, schedule: Schedule, last_run: int | None, now: int) -> int | None:
    """Return the last plan time that has passed; if there is none, the next one.

    `last_run`: the last plan time that got a run, for a schedule whose plan times follow from the ends of runs.
    """
    for stretch in reversed([*history.up_to(max(now, history.cursor))]):
        at = stretch.times.prev(min(stretch.until, now) + 1)
        if at is not None and at > stretch.after and not history.ended(stretch):
            return at
    if last_run is not None:
        return last_run
    return None if schedule.next_plan is None else micros_at(schedule.next_plan)


def explain_plan_time(facts: PlanTimeFacts) -> Explanation:
    missed = [gap for gap in facts.ranges if gap.is_dense]
    if facts.runs:
        return _ran(facts)
    if facts.covering:
        return _coalesced(facts)
    if missed:
        words = f"It was missed, one of {missed[0].count} plan times from "
        words += f"{_at(missed[0].from_at)} to {_at(missed[0].to_at)}: {missed[0].reason}."
        return _explanation("missed", facts, [words], reason=missed[0].reason, count=missed[0].count)
    if facts.at > facts.history.cursor:
        return _undecided(facts)
    stretch = facts.history.at(facts.at)
    if stretch is None:
        first = facts.history.revisions[0]
        return _explanation("not_planned", facts, [f"The schedule begins at {_at(first.valid_from)}."])
    return _unnamed(facts, stretch) or _without_run(facts, stretch)


def _ran(facts: PlanTimeFacts) -> Explanation:
    """Explain runs of the plan time: if it has many scopes, how many went how, and then those that did not succeed."""
    summary = summary_of(planned.run.outcome for planned in facts.runs)
    # Stable: within a state they stay in the order of scopes.
    shown = sorted(facts.runs, key=lambda planned: planned.run.outcome == RunState.SUCCEEDED)
    unsuccessful = len(facts.runs) - summary.states.get(RunState.SUCCEEDED.value, 0)
    most = _SHOWN
    words = [f"{summary.words}."] if len(facts.runs) > 1 else []
    if len(facts.runs) > _SHOWN and unsuccessful:
        most = min(unsuccessful, _SHOWN_UNSUCCESSFUL)
    words += [_run_words(planned, facts.now) for planned in shown[:most]]
    hidden = unsuccessful - most
    if hidden > 0:
        words.append(f"{hidden} more did not succeed.")
    skipped = all(planned.run.state == "skipped" for planned in facts.runs)
    runs = [_run_facts(planned) for planned in shown[:most]]
    return _explanation("skipped" if skipped else "ran", facts, words, runs=runs, counts=dict(summary.states))


def _run_words(planned: PlanTimeRun, now: int) -> str:
    run, scope = planned.run, _for(planned.run.scope)
    again = "" if run.again is None else f" Run {run.again.run_id}, which replaces it, is {run.again.state}."
    if run.state == "skipped":
        return f"It was skipped{scope}: {run.reason} (run {run.id}).{again}"
    words = f"Run {run.id}{scope} is {run.state}{_cause(planned)}"
    if planned.started_at is not None:
        words += f"; it began {_after(run.plan_time, planned.started_at)}"
    elif planned.run_at > now:
        words += f"; it may begin at {_at(planned.run_at)}"
    if run.covered:
        words += f"; it also covers {run.covered} earlier plan times"
    return f"{words}.{again}"


def _cause(planned: PlanTimeRun) -> str:
    run, error = planned.run, planned.error
    if run.state in (RunState.CANCELLING, RunState.CANCELLED):
        by = f" by {planned.cancelled_by}" if planned.cancelled_by and not is_policy(planned.cancelled_by) else ""
        return by + (f": {run.reason}" if run.reason else "")
    if error is None:
        return ""
    ended = RunState(run.state).is_final
    return f"{':' if ended else '; its last attempt ended with'} {error.type}: {error.message}"


def _run_facts(planned: PlanTimeRun) -> dict[str, Json]:
    run = planned.run
    late = None if planned.started_at is None else max(0, planned.started_at - run.plan_time) // 1_000
    return {
        "run_id": run.id,
        "scope": msgspec.to_builtins(run.scope),
        "state": run.state,
        "reason": run.reason,
        "cancelled_by": planned.cancelled_by,
        "error": None if planned.error is None else {"type": planned.error.type, "message": planned.error.message},
        "run_at": _at(planned.run_at),
        "started_at": None if planned.started_at is None else _at(planned.started_at),
        "finished_at": None if planned.finished_at is None else _at(planned.finished_at),
        "lateness_ms": late,
        "missed_count": run.covered,
        "again": msgspec.to_builtins(run.again),
    }


def _coalesced(facts: PlanTimeFacts) -> Explanation:
    words = [
        f"It was coalesced{_for(run.scope)} into run {run.id} of {_at(run.plan_time)}, which is {run.state}: that run "
        f"covers {run.covered} earlier plan times."
        for run in facts.covering[:_SHOWN]
    ]
    runs = [{"run_id": run.id, "scope": msgspec.to_builtins(run.scope), "state": run.state} for run in facts.covering]
    return _explanation("coalesced", facts, words, runs=runs[:_SHOWN])


def _unnamed(facts: PlanTimeFacts, stretch: Stretch) -> Explanation | None:
    """Explain an instant that the rule in force does not name; None if it does name it."""
    definition = stretch.revision.definition
    if definition.follows is not None:
        reason = "The schedule plans each run after the end of the last one: this is not one of its plan times."
        return _explanation("not_planned", facts, [reason])
    if definition.awaited is not None:
        reason = f"The schedule runs {describe(definition.rule)}: it has no plan times of its own."
        return _explanation("not_planned", facts, [reason])
    if stretch.times.is_time(facts.at):
        return None
    removed = _removed_by(definition.rule, facts.history.name, facts.at)
    words = [f"It is not a plan time: {removed}." if removed else "It is not a plan time."]
    before, after = stretch.times.prev(facts.at), stretch.times.next(facts.at)
    words.append(f"The previous one is {_at(before)}." if before is not None else "There is no earlier one.")
    words.append(f"The next one is {_at(after)}." if after is not None else "There is no later one.")
    return _explanation(
        "not_planned",
        facts,
        words,
        removed_by=removed,
        before=None if before is None else _at(before),
        after=None if after is None else _at(after),
    )


def _removed_by(rule: Rule, name: str, at: int) -> str | None:
    if rule.start_at is not None and at < rule.start_at:
        return f"the schedule starts at {_at(rule.start_at)}"
    if rule.end_at is not None and at > rule.end_at:
        return f"the schedule ended at {_at(rule.end_at)}"
    free = msgspec.structs.replace(rule, windows=(), exclude=())
    if not rules.compiled(free, name).is_time(at):
        return None
    if rule.exclude and not rules.compiled(msgspec.structs.replace(rule, windows=()), name).is_time(at):
        return "its date is excluded"
    return "it is outside of the execution windows"


def _without_run(facts: PlanTimeFacts, stretch: Stretch) -> Explanation:
    revision = stretch.revision
    folded = [gap for gap in facts.ranges if not gap.is_dense and gap.reason != UNNAMED]
    if not revision.active:
        return _resting(facts, stretch)
    if folded:
        kind = folded[0].kind
        extent = f"{folded[0].count} plan times from {_at(folded[0].from_at)} to {_at(folded[0].to_at)}"
        word = "pruned" if kind == "pruned" else f"skipped ({folded[0].reason})"
        words = [f"Its own record was compacted: {extent} were {word}."]
        return _explanation(kind, facts, words, reason=folded[0].reason, count=folded[0].count)
    return _explanation("unknown", facts, ["It has no record, which is an error in the ledger: run `rota doctor`."])


def _resting(facts: PlanTimeFacts, stretch: Stretch) -> Explanation:
    inactivity = facts.history.rests[stretch.revision.no]
    if inactivity.ended:
        return _after_its_end(facts, inactivity)
    by = f" by {inactivity.by}" if inactivity.by else ""
    words = [f"The schedule was not active then: {inactivity.reason}{by}, since {_at(inactivity.since)}."]
    return _explanation("paused", facts, words, reason=inactivity.reason, by=inactivity.by, since=_at(inactivity.since))


def _after_its_end(facts: PlanTimeFacts, inactivity: Inactivity) -> Explanation:
    stretch = facts.history.at(facts.at)
    definition = facts.schedule.definition if stretch is None else stretch.revision.definition
    had = "the only run" if definition.max_runs == 1 else f"the last of the {definition.max_runs} runs"
    words = [f"It is not a plan time: the schedule ended at {_at(inactivity.since)}, after {had} that it may have."]
    return _explanation("not_planned", facts, words, max_runs=definition.max_runs, ended_at=_at(inactivity.since))


def _undecided(facts: PlanTimeFacts) -> Explanation:
    """Explain an instant after the cursor: due and not planned yet, or in the future."""
    schedule, history = facts.schedule, facts.history
    times = schedule.definition.times(schedule.name)
    current = Stretch(history.revisions[-1], times, history.cursor, facts.at)
    if schedule.definition.follows is None:
        unnamed = _unnamed(facts, current)
    else:
        is_next = schedule.next_plan is not None and micros_at(schedule.next_plan) == facts.at
        unnamed = None if is_next else _unnamed(facts, current)
    if unnamed:
        return unnamed
    inactivity = history.rests.get(history.revisions[-1].no)
    if inactivity is not None and inactivity.ended:
        return _after_its_end(facts, inactivity)
    why = _why_resting(schedule)
    if why and facts.at <= facts.now:
        what = "job" if schedule.job_paused and schedule.paused_at is None else "schedule"
        words = [why, f"It gets a run only if the {what} is resumed with catch-up."]
        since = None if inactivity is None else _at(inactivity.since)
        reason, by = (
            (schedule.pause_reason, schedule.paused_by) if inactivity is None else (inactivity.reason, inactivity.by)
        )
        return _explanation("paused", facts, words, reason=reason, by=by, since=since)
    room = facts.standing.room
    number = times.count(history.cursor, facts.at)
    if room is not None and number > room:
        words = [f"It will not run: the schedule may have {schedule.definition.max_runs} runs, and they are used up."]
        return _explanation("not_planned", facts, words, max_runs=schedule.definition.max_runs, fired=schedule.fired)
    due = facts.at + in_micros(schedule.definition.delay)
    if due <= facts.now:
        return _explanation("pending", facts, [f"It was due at {_at(due)}, and is not planned yet.", *_why_late(facts)])
    return _future(facts, due, why)


def _why_resting(schedule: Schedule) -> str | None:
    by = f" by {schedule.paused_by}" if schedule.paused_by else ""
    if not schedule.enabled:
        return "The schedule is disabled."
    if schedule.paused_at is not None:
        reason = f": {schedule.pause_reason}" if schedule.pause_reason else ""
        until = f", until {_at(micros_at(schedule.resume_at))}" if schedule.resume_at else ""
        return f"The schedule is paused{by} since {_at(micros_at(schedule.paused_at))}{until}{reason}."
    if not schedule.job_paused:
        return None
    return f"Its job {schedule.job!r} is {'cancelled' if schedule.job_cancelled else 'paused'}."


def _why_late(facts: PlanTimeFacts) -> list[str]:
    if facts.schedule.trouble:
        return [f"The last attempt to plan it failed: {facts.schedule.trouble}."]
    if facts.next_at is None or facts.now - facts.next_at < _LATE:
        return ["A server or worker plans it within a second."]
    if facts.provider:
        words = f"It waits for a process that has the scope provider {facts.provider!r} registered."
        return [words, *_planners(facts)]
    return _planners(facts)


def _planners(facts: PlanTimeFacts) -> list[str]:
    if facts.planners:
        alive = (
            "1 worker is alive, and plans" if facts.planners == 1 else f"{facts.planners} workers are alive, and plan"
        )
        return [f"{alive} other schedules."]
    return ["No worker is alive: start `rota server`, `rota dev` or `rota worker`."]


def _future(facts: PlanTimeFacts, due: int, why: str | None) -> Explanation:
    words, held = [], []
    schedule = facts.schedule
    resumed = schedule.resume_at is not None and micros_at(schedule.resume_at) < facts.at
    if why and not resumed:
        words = [why, "Unless that changes, it will not run."]
    else:
        words = [*([why] if why else []), f"It will be planned at {_at(due)}."]
    moments = [(scope, eligible(facts.standing, scope, facts.at)) for scope in _few(facts.lanes)]
    if schedule.definition.jitter:
        words += [f"Its run{_for(scope)} may begin at {_at(moment)}." for scope, moment in moments]
    for scope in _few(facts.lanes):
        reason = _held_by(facts, facts.lanes[scope])
        if reason:
            held.append(reason)
            words.append(f"If it were due now, {reason}{_for(scope)}.")
    eligible_at = [{"scope": msgspec.to_builtins(scope), "at": _at(moment)} for scope, moment in moments]
    return _explanation("future", facts, words, planned_at=_at(due), eligible_at=eligible_at, held_by=held)


def _held_by(facts: PlanTimeFacts, lane: Lane) -> str | None:
    definition = facts.schedule.definition
    decision = decide(definition.overlap, definition.failure, lane, facts.now, facts.max_attempts)
    if isinstance(decision, Skip):
        return f"it would be skipped: {decision.reason}"
    if not isinstance(decision, Create):
        return f"the schedule would be paused: {decision.reason}"
    if decision.after:
        return f"it would wait for run {decision.after[-1]}"
    if decision.supersedes:
        return f"it would supersede run {decision.supersedes[-1]}"
    return None


def _few(lanes: Iterable[Scope]) -> list[Scope]:
    return list(lanes)[:_SHOWN]


def _explanation(verdict: str, facts: PlanTimeFacts, words: Sequence[str], **more: Any) -> Explanation:
    common = {"schedule": facts.schedule.name, "at": _at(facts.at), "now": _at(facts.now)}
    return Explanation(verdict=verdict, words=tuple(words), facts={**common, **more})


def _for(scope: Scope) -> str:
    return "" if scope == Scope() else f" for {scope_text(scope)}"


def _at(micros: int) -> str:
    return written(instant(micros))


def written(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _after(plan_time: int, moment: int) -> str:
    late = instant(moment) - instant(plan_time)
    return f"{span(late)} after its plan time" if moment >= plan_time else age(instant(moment), instant(plan_time))
