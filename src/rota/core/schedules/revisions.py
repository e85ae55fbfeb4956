"""Revisions of a schedule, and the reasons why some of them were not active."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import BadTrigger
from rota.values.durations import in_micros

JOB_PAUSED, JOB_CANCELLED, JOB_RESUMED, RESUMED = "job paused", "job cancelled", "job resumed", "resumed"
DELETED, RESTORED = "deleted", "restored"
"""Notes of revisions. That of a pause of the schedule itself begins with `paused`, its end by max_runs with `ended`."""
_DISABLING = (JOB_CANCELLED, "job deleted")
"""Notes of revisions that disabled a schedule because of its job; programs up to schema 8 did so for a cancel."""


class Revision(msgspec.Struct, frozen=True):
    """Definition that is valid from `valid_from` on; while not `active`, its plan times get no runs.

    `note` says what was done to the schedule.
    """

    no: int
    valid_from: int
    definition: ScheduleDefinition
    tzdata: str
    active: bool
    note: str | None = None
    actor: str | None = None
    made_at: int = 0


class Inactivity(msgspec.Struct, frozen=True):
    """Reason why a schedule was not active, by whom and since when.

    `ended`: it had all its runs, and names no plan times any more.
    """

    reason: str
    by: str | None
    since: int
    ended: bool = False


def rests(revisions: Iterable[Revision]) -> dict[int, Inactivity]:
    """Return why each revision that was not active was so, by its number.

    The note of one revision, such as an edit or a pause of its job, is not enough: an earlier reason may still hold.
    """
    holds, reasons = _Holds(), {}
    for revision in revisions:
        holds.update(revision)
        if not revision.active:
            reasons[revision.no] = holds.strongest
    return reasons


class _Holds(msgspec.Struct):
    """Reasons that hold a schedule, updated from revision to revision; `spent` are the max_runs that it has had."""

    job: str = ""
    gone: Inactivity | None = None
    off: Inactivity | None = None
    own: Inactivity | None = None
    by_job: Inactivity | None = None
    end: Inactivity | None = None
    spent: int = 0

    @property
    def strongest(self) -> Inactivity:
        """Return the reason that `explain` names first."""
        reason = self.gone or self.end or self.off or self.own or self.by_job
        assert reason is not None
        return reason

    def update(self, revision: Revision) -> None:
        definition, note = revision.definition, revision.note or ""
        self.gone = _inactivity(revision, note) if note == DELETED else None
        if definition.max_runs is None or definition.max_runs > self.spent:
            self.end = None
        if revision.active or definition.job != self.job:
            self.by_job = None
        if revision.active:
            self.off = self.own = None
        elif self.gone is None:  # what held it before holds it again if it is restored
            self._note(revision, note)
        self.job = definition.job

    def _note(self, revision: Revision, note: str) -> None:
        if revision.definition.enabled:
            self.off = None
        elif self.off is None:
            self.off = _inactivity(revision, note if note in _DISABLING else "disabled")
        if note.startswith("paused"):
            self.own = _inactivity(revision, note, self.own)
        elif note == RESUMED:
            self.own = None
        elif note in (JOB_PAUSED, JOB_CANCELLED) and revision.definition.enabled:
            self.by_job = _inactivity(revision, note, self.by_job)
        elif note == JOB_RESUMED:
            self.by_job = None
        if self.off is None and self.own is None and self.by_job is None and self.end is None:
            self._infer(revision)

    def _infer(self, revision: Revision) -> None:
        """Infer a reason that no note gives: it had all its runs, or its job was paused when it was given that job."""
        most = revision.definition.max_runs
        if most is None or revision.definition.job != self.job:
            self.by_job = _inactivity(revision, JOB_PAUSED)
        else:
            self.end = Inactivity(f"ended: its max_runs were {most}", revision.actor, revision.valid_from, ended=True)
            self.spent = most


def _inactivity(revision: Revision, reason: str, before: Inactivity | None = None) -> Inactivity:
    return Inactivity(reason, revision.actor, revision.valid_from if before is None else before.since)


def first_cursor(definition: ScheduleDefinition, name: str, now: int) -> int:
    """Return the cursor of a new schedule: now, or just before a single plan time in the past, which is due at once.

    A schedule that is over is refused: it would never make a run.
    """
    only_at, cursor = definition.rule.trigger.only_at, now
    if only_at is not None and only_at <= now:
        if now - only_at > in_micros(definition.catch_up.window) or not definition.catch_up.runs_late:
            hint = "give a time to come"
            raise BadTrigger("it is over, longer ago than its catch-up allows", field="once", hint=hint)
        cursor = only_at - 1
    times = definition.times(name)
    if (times.next_allowed(cursor) if times.waits_for_ends else times.next(cursor)) is None:
        field = None if definition.rule.end_at is None else "end_at"
        raise BadTrigger("it is over: no plan time is left", field=field, hint="give a time to come")
    return cursor


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a schedule: who makes it and why, as its revision tells it.

    `noted`: it is an act of its own, not part of another (a job's pause, for example). `type` is that of its event, if
    it does not follow from the note.
    """

    note: str
    type: str | None = None
    noted: bool = True
    details: dict[str, Any] = {}
    actor: str | None = None
    declared: str | None = None
    owner: str | None = None
