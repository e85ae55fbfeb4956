"""State of a job, derived from its pause, its runs and its schedules."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec
from msgspec import Meta

from rota.core.jobs.job import JobDefinition, JobKind
from rota.core.jobs.secrets import masked
from rota.core.states import RunState
from rota.errors import Invalid, did_you_mean
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
    JobState.PENDING: "it never ran, and no run is planned",
    JobState.SCHEDULED: "a run waits, or a schedule has a next plan time",
    JobState.RUNNING: "a run is in progress",
    JobState.PAUSED: "it is paused; its runs wait",
    JobState.COMPLETED: "no run is planned, and its newest run succeeded",
    JobState.FAILED: "no run is planned, and its newest run failed, timed out or expired",
    JobState.CANCELLED: "no run is planned, and its newest run was cancelled",
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


class JobView(JobDefinition, frozen=True, kw_only=True):
    """Job as callers see it: its definition, with secrets masked, and its `status`."""

    status: JobStatus
    """State and counts of the job."""


def job_view(definition: JobDefinition, facts: JobFacts) -> JobView:
    """Return a job as callers see it."""
    return JobView(**msgspec.structs.asdict(masked(definition)), status=status_of(facts))


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


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts from which the state of a job is derived; times in microseconds.

    `due_at` is when its next waiting run is due, `planned_at` the next plan time of its active schedules; `began_at`
    and `ended` are those of its newest finished run that was not skipped.
    """

    job: str
    paused_at: int | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
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
    RunState.CANCELLED: JobState.CANCELLED,
}
RETRIED_BY_HAND = frozenset({RunState.FAILED, RunState.TIMED_OUT, RunState.EXPIRED, RunState.CANCELLED})
"""Final states of a job's newest run from which the job can be retried by hand."""


def job_state(facts: JobFacts) -> JobState:
    if facts.paused_at is not None:
        return JobState.PAUSED
    if facts.running:
        return JobState.RUNNING
    if facts.waiting or facts.planned_at is not None:
        return JobState.SCHEDULED
    return JobState.PENDING if facts.ended is None else _AFTER[RunState(facts.ended)]


def status_of(facts: JobFacts) -> JobStatus:
    began = [at for at in (facts.began_at, facts.running_since) if at is not None]
    return JobStatus(
        job=facts.job,
        state=job_state(facts),
        running=facts.running,
        waiting=facts.waiting,
        last_run_at=_instant(max(began, default=None)),
        next_at=_instant(next_at(facts)),
        paused_at=_instant(facts.paused_at),
        paused_by=facts.paused_by,
        pause_reason=facts.pause_reason,
    )


def next_at(facts: JobFacts) -> int | None:
    if facts.paused_at is not None:
        return None
    return min((at for at in (facts.due_at, facts.planned_at) if at is not None), default=None)


def resume_mode(text: str) -> ResumeMode:
    """Return the mode that `text` names: what happens to the plan times that passed during a pause."""
    if text not in RESUME_MODES:
        hint = did_you_mean(text, RESUME_MODES)
        raise Invalid(f"catch_up of a resume cannot be {text!r}", hint=hint)
    return ResumeMode(text)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else instant(micros)
