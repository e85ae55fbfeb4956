"""Revisions of a schedule: what it names from an instant on, and what held it while it was not active."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import BadTrigger
from rota.values.durations import in_micros

JOB_PAUSED, JOB_RESUMED, RESUMED = "job paused", "job resumed", "resumed"
"""Notes of revisions. A pause of the schedule's own begins with `paused`, its end by max_runs with `ended`."""
_CANCELLED = "job cancelled"


class Revision(msgspec.Struct, frozen=True):
    """What a schedule names from `valid_from` on; while not `active`, that gets no runs. `note`: what was done."""

    no: int
    valid_from: int
    definition: ScheduleDefinition
    tzdata: str
    active: bool
    note: str | None = None
    actor: str | None = None
    made_at: int = 0


class Inactivity(msgspec.Struct, frozen=True):
    """What held a schedule, by whom and since when. `ended`: it had all its runs, and names no plan times any more."""

    reason: str
    by: str | None
    since: int
    ended: bool = False


def rests(revisions: Iterable[Revision]) -> dict[int, Inactivity]:
    """What held each revision that was not active, by its number.

    What was done to the schedule, such as an edit or a pause of its job, does not tell: something else may have held it
    before, and still does.
    """
    holds, found = _Holds(), {}
    for revision in revisions:
        holds.go_on(revision)
        if not revision.active:
            found[revision.no] = holds.strongest
    return found


class _Holds(msgspec.Struct):
    """All that holds a schedule, as one revision follows the other; `spent` are the max_runs that it has had."""

    job: str = ""
    off: Inactivity | None = None
    own: Inactivity | None = None
    by_job: Inactivity | None = None
    end: Inactivity | None = None
    spent: int = 0

    @property
    def strongest(self) -> Inactivity:
        """In the order in which `explain` tells of them."""
        found = self.end or self.off or self.own or self.by_job
        assert found is not None
        return found

    def go_on(self, revision: Revision) -> None:
        definition, note = revision.definition, revision.note or ""
        if definition.max_runs is None or definition.max_runs > self.spent:
            self.end = None
        if revision.active or definition.job != self.job:
            self.by_job = None
        if revision.active:
            self.off = self.own = None
        else:
            self._note(revision, note)
        self.job = definition.job

    def _note(self, revision: Revision, note: str) -> None:
        if revision.definition.enabled:
            self.off = None
        elif self.off is None:
            self.off = _rest(revision, note if note == _CANCELLED else "disabled")
        if note.startswith("paused"):
            self.own = _rest(revision, note, self.own)
        elif note == RESUMED:
            self.own = None
        elif note == JOB_PAUSED:
            self.by_job = _rest(revision, note, self.by_job)
        elif note == JOB_RESUMED:
            self.by_job = None
        if self.off is None and self.own is None and self.by_job is None and self.end is None:
            self._last_resort(revision)

    def _last_resort(self, revision: Revision) -> None:
        """Nothing that was noted holds it: it has had all its runs, or its job was paused when it became that one's."""
        most = revision.definition.max_runs
        if most is None or revision.definition.job != self.job:
            self.by_job = _rest(revision, JOB_PAUSED)
        else:
            self.end = Inactivity(f"ended: its max_runs were {most}", revision.actor, revision.valid_from, ended=True)
            self.spent = most


def _rest(revision: Revision, reason: str, before: Inactivity | None = None) -> Inactivity:
    return Inactivity(reason, revision.actor, revision.valid_from if before is None else before.since)


def first_cursor(definition: ScheduleDefinition, name: str, now: int) -> int:
    """Of a new one: from now on, except that what should have run once, a while ago, is due at once.

    One that is over is refused: nothing would ever come of it.
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
