"""State of a job, derived from its pause or cancel, its runs and its schedules, and the state machine of its verbs.

The store applies the state machine under the job's lock, so that of two verbs that exclude each other one is refused.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec
from msgspec import Meta

from rota.core.jobs.job import JobDefinition, JobKind
from rota.core.jobs.secrets import masked
from rota.core.limits.live import LiveLimit
from rota.core.states import RunState
from rota.errors import Conflict, Invalid, JobDisabled, JobRefuses, did_you_mean
from rota.values.instants import instant


class ResumeMode(StrEnum):
    """Treatment of the plan times that passed while a job or a schedule was paused."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


RESUME_MODES = tuple(mode.value for mode in ResumeMode)


class JobState(StrEnum):
    """State of a job as a whole."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


JOB_STATE_WORDS: dict[JobState, str] = {
    JobState.PENDING: "no run is planned, and it never ran, or its newest run was cancelled",
    JobState.SCHEDULED: "a run waits, or a schedule has a next plan time",
    JobState.RUNNING: "a run is in progress",
    JobState.PAUSED: "it is paused; its runs wait",
    JobState.COMPLETED: "no run is planned, and its newest run succeeded",
    JobState.FAILED: "no run is planned, and its newest run failed, timed out or expired",
    JobState.CANCELLED: "it was cancelled as a whole; nothing of it begins until it is resumed",
}


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """State and counts of a job; `next_at` is when its next run is due, None while the job is paused."""

    job: str
    state: JobState
    running: int
    waiting: int
    last_run_at: datetime | None
    next_at: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    cancelled_at: datetime | None = None
    """When the job was cancelled; null unless it is, or once it is resumed."""
    cancelled_by: str | None = None
    """Who cancelled the job."""
    cancel_reason: str | None = None
    """Why the job was cancelled."""
    live_limit: LiveLimit | None = None
    """Limit that an operator set on the job, beside those that it declares."""


class JobView(JobDefinition, frozen=True, kw_only=True):
    """Job as callers see it: its definition, with secrets masked, and its `status`."""

    status: JobStatus
    """State and counts of the job."""
    created_at: datetime | None = None
    """When the job was stored; null if only this process declares it."""
    updated_at: datetime | None = None
    """When its definition was last changed."""


def job_view(definition: JobDefinition, facts: JobFacts) -> JobView:
    """Return a job as callers see it."""
    return JobView(
        **msgspec.structs.asdict(masked(definition)),
        status=status_of(facts),
        created_at=_instant(facts.created_at),
        updated_at=_instant(facts.updated_at),
    )


class JobFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions on a job, all of which must hold."""

    name: Annotated[str, Meta(max_length=200, description="Name, or a pattern: `import-*`")] | None = None
    text: Annotated[str, Meta(max_length=200, description="Part of the name, in any case")] | None = None
    kind: Annotated[str, Meta(description="python, http, command, external or pipeline")] | None = None
    queue: Annotated[str, Meta(description="Queue of its runs")] | None = None
    tag: Annotated[str, Meta(description="One of its tags")] | None = None
    state: Annotated[str, Meta(description="State of the job, such as paused or failed")] | None = None

    def checked(self) -> JobFilter:
        """Return the filter; refuse a kind or a state that no job can have."""
        for field, words in (("kind", tuple(JobKind)), ("state", tuple(JobState))):
            word = getattr(self, field)
            if word is not None and word not in words:
                raise Invalid(f"{field} of a job cannot be {word!r:.80}", hint=did_you_mean(word, words))
        return self

    def selects(self, definition: JobDefinition) -> bool:
        """Return whether all conditions hold that the definition decides, without its state."""
        return (
            (self.name is None or fnmatchcase(definition.name, self.name))
            and (self.text is None or self.text.lower() in definition.name.lower())
            and self.kind in (None, definition.kind)
            and self.queue in (None, definition.queue)
            and (self.tag is None or self.tag in definition.tags)
        )


class JobAction(StrEnum):
    """Command for many jobs at once."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"


def job_action(word: str) -> JobAction:
    """Return the command that a word names."""
    actions = tuple(JobAction)
    if word not in actions:
        raise Invalid(f"action cannot be {word!r:.80}", hint=did_you_mean(word, actions))
    return JobAction(word)


def checked_filter(job_filter: JobFilter | None, action: JobAction, *, everything: bool) -> JobFilter:
    """Return the filter of a command for many jobs. Refuse an empty one, unless `everything` is meant."""
    chosen = (job_filter or JobFilter()).checked()
    if chosen == JobFilter() and not everything:
        hint = "add a condition, or pass everything=True (--all)"
        raise Invalid(f"the filter is empty, and would {action} every job", hint=hint)
    return chosen


class CancelledJob(msgspec.Struct, frozen=True):
    """Result of cancelling a job: `cancelled` runs have ended or were asked to stop."""

    job: str
    cancelled: int
    status: JobStatus
    """State and counts of the job."""
    schedules: tuple[str, ...] = ()
    """Names of the schedules that rest because of it, until the job is resumed; at most 500."""


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts from which the state of a job is derived; times in microseconds. A cancelled job is held as a paused one.

    `due_at` is when its next waiting run is due, `planned_at` the next plan time of its active schedules; `began_at`
    and `ended` are those of its newest finished run that was not skipped.
    """

    job: str
    paused_at: int | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    cancelled_at: int | None = None
    cancelled_by: str | None = None
    cancel_reason: str | None = None
    live_limit: LiveLimit | None = None
    created_at: int | None = None
    updated_at: int | None = None
    running: int = 0
    running_since: int | None = None
    waiting: int = 0
    due_at: int | None = None
    planned_at: int | None = None
    began_at: int | None = None
    ended: str | None = None


_AFTER = {
    RunState.SUCCEEDED: JobState.COMPLETED,
    RunState.FAILED: JobState.FAILED,
    RunState.TIMED_OUT: JobState.FAILED,
    RunState.EXPIRED: JobState.FAILED,
    RunState.CANCELLED: JobState.PENDING,
}
RETRIED_BY_HAND = frozenset({RunState.FAILED, RunState.TIMED_OUT, RunState.EXPIRED, RunState.CANCELLED})
"""Final states of a job's newest run from which the job can be retried by hand."""


def job_state(facts: JobFacts) -> JobState:
    if facts.cancelled_at is not None:
        return JobState.CANCELLED
    if facts.paused_at is not None:
        return JobState.PAUSED
    if facts.running:
        return JobState.RUNNING
    if facts.waiting or facts.planned_at is not None:
        return JobState.SCHEDULED
    return JobState.PENDING if facts.ended is None else _AFTER[RunState(facts.ended)]


def status_of(facts: JobFacts) -> JobStatus:
    began = [at for at in (facts.began_at, facts.running_since) if at is not None]
    is_cancelled = facts.cancelled_at is not None
    return JobStatus(
        job=facts.job,
        state=job_state(facts),
        running=facts.running,
        waiting=facts.waiting,
        last_run_at=_instant(max(began, default=None)),
        next_at=_instant(next_at(facts)),
        # A cancel holds the job as a pause does, and ends one: only the cancel is told.
        paused_at=_instant(None if is_cancelled else facts.paused_at),
        paused_by=None if is_cancelled else facts.paused_by,
        pause_reason=None if is_cancelled else facts.pause_reason,
        cancelled_at=_instant(facts.cancelled_at),
        cancelled_by=facts.cancelled_by,
        cancel_reason=facts.cancel_reason,
        live_limit=facts.live_limit,
    )


def next_at(facts: JobFacts) -> int | None:
    if facts.paused_at is not None:
        return None
    return min((at for at in (facts.due_at, facts.planned_at) if at is not None), default=None)


class JobVerb(StrEnum):
    """Command about a job that its state may refuse."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"
    RUN = "run"
    SCHEDULE = "schedule"
    UPDATE = "update"
    DELETE = "delete"


class Standing(StrEnum):
    """State of a job as far as verbs depend on it. Idle: nothing of it is live or planned."""

    IDLE = "idle"
    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"


_I, _A, _P, _C = Standing.IDLE, Standing.ACTIVE, Standing.PAUSED, Standing.CANCELLED
_TABLE: dict[JobVerb, dict[Standing, Standing]] = {
    JobVerb.PAUSE: {_I: _P, _A: _P, _P: _P},
    JobVerb.RESUME: {_I: _I, _A: _A, _P: _A, _C: _A},
    JobVerb.CANCEL: {_A: _C, _P: _C},
    JobVerb.RETRY: {_I: _A, _A: _A, _P: _P},
    JobVerb.RUN: {_I: _A, _A: _A, _P: _P},
    JobVerb.SCHEDULE: {_I: _A, _A: _A, _P: _P, _C: _C},
    JobVerb.UPDATE: {_I: _I, _A: _A, _P: _P, _C: _C},
    JobVerb.DELETE: {_I: _I, _A: _A, _P: _P, _C: _C},
}
"""Verb → state → next state; a state that is missing refuses the verb. After a resume that leaves nothing planned the
job is idle. A schedule that comes to a paused or cancelled job waits until it is resumed, and so does a run that comes
to a paused one. An enqueue of a job that only code declares does not look at the job: also if it is cancelled, the run
waits, and another cancel ends it. Update and delete are for data jobs."""
_NEEDS_ENABLED = (JobVerb.RETRY, JobVerb.RUN)


def standing_of(facts: JobFacts) -> Standing:
    """Return the state that verbs depend on."""
    if facts.cancelled_at is not None:
        return Standing.CANCELLED
    if facts.paused_at is not None:
        return Standing.PAUSED
    live = facts.running or facts.waiting or facts.planned_at is not None
    return Standing.ACTIVE if live else Standing.IDLE


def possible_verbs(standing: Standing, *, enabled: bool = True) -> list[JobVerb]:
    """Return the verbs that a job in this state allows."""
    return [verb for verb, after in _TABLE.items() if standing in after and (enabled or verb not in _NEEDS_ENABLED)]


def decide_verb(job: str, standing: Standing, verb: JobVerb, *, enabled: bool = True) -> Standing | Conflict:
    """Return the state that the verb leads to, or the refusal, which names the verbs that are possible."""
    after = _TABLE[verb].get(standing)
    if after is None:
        words = "has nothing that is live or planned" if standing is Standing.IDLE else f"is {standing}"
        return JobRefuses(job, verb, words, [str(other) for other in possible_verbs(standing, enabled=enabled)])
    if not enabled and verb in _NEEDS_ENABLED:
        return JobDisabled(job)
    return after


def require_verb(job: str, standing: Standing, verb: JobVerb, *, enabled: bool = True) -> None:
    """Raise the refusal, if the job's state does not allow the verb."""
    answer = decide_verb(job, standing, verb, enabled=enabled)
    if isinstance(answer, Conflict):
        raise answer


def resume_mode(text: str) -> ResumeMode:
    """Return the mode that `text` names: what happens to the plan times that passed during a pause."""
    if text not in RESUME_MODES:
        hint = did_you_mean(text, RESUME_MODES)
        raise Invalid(f"catch_up of a resume cannot be {text!r}", hint=hint)
    return ResumeMode(text)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else instant(micros)
