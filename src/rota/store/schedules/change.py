"""Create, change, pause, resume, delete and restore schedules: each a revision, decided under the cursor's lock."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.jobs.status import ResumeMode
from rota.core.ledger.audit import type_of
from rota.core.ledger.verify import is_zoned
from rota.core.planning.catch_up import Gap
from rota.core.planning.tick import SECOND
from rota.core.schedules.policies import CatchUp, catch_up_after_pause
from rota.core.schedules.revisions import DELETED, JOB_RESUMED, RESTORED, RESUMED, Change, first_cursor
from rota.core.schedules.schedule import ScheduleDefinition
from rota.core.schedules.view import shown_document
from rota.errors import BadTrigger, DuplicateSchedule, UnknownJob, UnknownSchedule
from rota.store.alerts import expectations, notifications
from rota.store.alerts.emit_signal import tell_missed
from rota.store.databases.database import Tx
from rota.store.ledger import audit
from rota.store.planning.plan import MOST_RUNS, NewId, Providers, plan_rows
from rota.store.planning.scope_spans import open_scopes
from rota.store.schedules import job_triggers
from rota.store.schedules.schedule_row import ScheduleRow, encoded, schedule_row
from rota.values.durations import in_micros


async def create(
    tx: Tx, id: str, name: str, definition: ScheduleDefinition, owner: str, *, declared: str | None, actor: str | None
) -> None:
    await require_job(tx, definition.job)
    ((now,),) = await tx.fetch("now")
    try:
        cursor = first_cursor(definition, name, int(now))
    except BadTrigger:
        if await _is_made(tx, id, name):  # an earlier try may have committed while there were plan times left
            return
        raise
    row = ScheduleRow(
        0, id, name, encoded(definition), 1, int(definition.enabled), None, None, 0, owner, declared, 0,
        cursor, None, None, 0, TZDATA_VERSION, definition.provider, None,
    )  # fmt: skip
    row = _placed(row, int(now))
    ((no,),) = await tx.fetch(
        "insert_cursor",
        cursor_at=cursor,
        next_plan=row.next_plan,
        next_at=_next_at(row),
        tzdata=row.tzdata,
        provider=row.provider,
    )
    inserted = await tx.fetch(
        "insert_schedule",
        id=id,
        cursor_no=no,
        name=name,
        job=definition.job,
        definition=row.text,
        declared=declared,
        owner=owner,
        enabled=row.enabled,
        zoned=int(is_zoned(definition.rule)),
    )
    if not inserted:
        await tx.fetch("drop_cursors", [(no,)])
        if await _is_made(tx, id, name):
            return
        raise DuplicateSchedule(name)
    await job_triggers.heed(tx, id, name, definition)
    await notifications.heed_schedule(tx, name)
    active = row.active
    ((job_paused,),) = inserted
    if job_paused:
        row = _placed(msgspec.structs.replace(row, job_paused=1, cursor_no=no), int(now))
        await _write(tx, row)
        active = False
    change = Change(note="created", actor=actor, details={"job": definition.job, "owner": owner})
    await _note(tx, row, change, valid_from=cursor, active=active)
    if definition.expect is not None:
        await expectations.declare(tx, _subject(row), definition.expect)


async def require_job(tx: Tx, job: str, *, hint: str | None = None) -> None:
    """Lock a schedule's future job, before its cursor (lock order). Raise `UnknownJob` if it is dropped."""
    await tx.fetch("lock_job", job=job)
    if await tx.fetch("job_is_dropped", job=job):
        raise UnknownJob(job, otherwise=hint)


async def _is_made(tx: Tx, id: str, name: str) -> bool:
    """Return whether an earlier try of this create, whose answer got lost, has committed.

    A schedule of this name that somebody else created is a `DuplicateSchedule`.
    """
    existing = await find(tx, name)
    if existing is not None and existing.id != id:
        raise DuplicateSchedule(name)
    return existing is not None


async def find(tx: Tx, name: str) -> ScheduleRow | None:
    """Lock and return a schedule. None if there is none, or it was deleted while this waited for its lock."""
    # Lock first, read in a second statement: on PostgreSQL the statement that waited for the lock may return the row
    # as it was before the wait.
    for (no,) in await tx.fetch("lock_schedule", name=name):
        for row in await tx.fetch("read_locked", no=no):
            return schedule_row(row)
    return None


async def locked(tx: Tx, name: str) -> ScheduleRow:
    row = await find(tx, name)
    if row is None:
        raise UnknownSchedule(name, [other for (other,) in await tx.fetch("schedule_names")])
    return row


async def update(tx: Tx, row: ScheduleRow, definition: ScheduleDefinition, change: Change, new_id: NewId) -> None:
    """Change a schedule's definition. Plan times up to now are the old definition's, later ones the new one's.

    To give it another job, the caller locks that first (`require_job`), and the cursor after it.
    """
    changed: dict[str, Any] = {
        "text": encoded(definition),
        "provider": definition.provider,
        "enabled": int(definition.enabled),
        "tzdata": TZDATA_VERSION,
    }
    if change.declared is not None:
        changed["declared"] = change.declared
    if change.owner is not None:
        changed["owner"] = change.owner
    if definition.job != row.definition.job:
        changed["job_paused"] = len(await tx.fetch("job_is_paused", job=definition.job))
        await notifications.heed_schedule(tx, row.name, definition.job)
    await job_triggers.heed(tx, row.id, row.name, definition, row.definition)
    if msgspec.structs.replace(row, **changed) != row:
        await revise(tx, row, _with_fields(change, row.definition, definition), new_id, **changed)
        if definition.expect != row.definition.expect:
            await expectations.declare(tx, _subject(row), definition.expect)
        if definition.enabled and not row.enabled:
            await expectations.anew(tx, "schedule", row.name)


def _subject(row: ScheduleRow) -> expectations.Subject:
    return expectations.Subject("schedule", row.name, row.definition.job, row.id)


def _with_fields(change: Change, old: ScheduleDefinition, new: ScheduleDefinition) -> Change:
    """Add the changed fields to the event. Enabling and disabling have event types of their own."""
    fields = [name for name in new.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    switched = "enabled" in fields and change.note == "edited"
    event = ("enabled" if new.enabled else "disabled") if switched else change.type
    return msgspec.structs.replace(change, type=event, details={**change.details, "changed": fields})


async def pause(
    tx: Tx, row: ScheduleRow, new_id: NewId, *, reason: str | None, actor: str | None, until: int | None
) -> None:
    """Pause a schedule.

    If it is paused already, the newer reason and end count. If they are the same, this is a repetition.
    """
    facts = {"paused_by": actor, "pause_reason": reason}
    if row.paused_at is not None and row.resume_at == until and await pause_facts(tx, row) == facts:
        return
    ((now,),) = await tx.fetch("now")
    note = f"paused: {reason}" if reason else "paused"
    change = Change(note=note, actor=actor, details={"reason": reason, "resume_at": until})
    await revise(tx, row, change, new_id, facts=facts, paused_at=row.paused_at or int(now), resume_at=until)


async def resume(tx: Tx, row: ScheduleRow, new_id: NewId, *, mode: str, actor: str | None) -> None:
    """Resume a schedule.

    `skip` starts anew from now; `latest` and `all` catch up with the plan times since the pause.
    """
    if row.paused_at is not None:
        await resume_with(tx, row, new_id, mode, actor, paused_at=None, resume_at=None)


async def resume_with(tx: Tx, row: ScheduleRow, new_id: NewId, mode: str, actor: str | None, **changed: Any) -> None:
    """Apply `changed`, which ends a pause of the schedule or of its job, and catch up as `mode` says."""
    after = msgspec.structs.replace(row, **changed)
    await expectations.anew(tx, "schedule", row.name)
    of_job = "job_paused" in changed
    note = JOB_RESUMED if of_job else RESUMED
    change = Change(note=note, actor=actor, noted=not of_job, details={"catch_up": mode})
    catch_up_mode = catch_up_after_pause(ResumeMode(mode))
    if catch_up_mode is None or not after.active or after.definition.follows is not None:
        facts = None if after.paused_at is None else await pause_facts(tx, row)
        await revise(tx, row, change, new_id, facts=facts, **changed)
        return
    ((now,),) = await tx.fetch("now")
    await tx.fetch("reopen_revisions", id=row.id, valid_from=row.cursor_at, note=f"paused, and caught up with ({mode})")
    after = msgspec.structs.replace(after, next_plan=after.standing.times.next(after.cursor_at))
    await _write(tx, after)
    own = after.definition.catch_up
    keep = max(1, min(own.keep, MOST_RUNS // len(after.definition.lanes)))  # in this one transaction
    policy = CatchUp(mode=catch_up_mode, window=own.window, keep=keep, per_tick=keep)
    after = await _settle(tx, after, new_id, int(now), policy)
    if after.active:  # else catching up has paused it again, and made the revision that says so
        after = msgspec.structs.replace(after, revision=after.revision + 1)
        await tx.fetch("revise_schedule", id=after.id, revision=after.revision)
        await _note(tx, after, change, valid_from=after.cursor_at, active=after.names)


async def delete(tx: Tx, row: ScheduleRow, new_id: NewId, actor: str | None) -> None:
    """Delete a schedule. Its row, its runs and its ledger stay; a new schedule may take its name.

    The event shows the definition, without secrets: the row, which `restore` needs, is dropped in the end.
    """
    details = {"definition": shown_document(row.name, row.definition)}
    await revise(tx, row, Change(note=DELETED, actor=actor, details=details), new_id, deleted=True)
    await expectations.delete(tx, _subject(row), actor=actor)
    if row.definition.awaited is not None:
        await job_triggers.forget(tx, row.id)


async def find_deleted(tx: Tx, name: str) -> ScheduleRow | None:
    """Lock and return the schedule of this name that was deleted last. None if there is none left, or it is back."""
    for id, no, job in await tx.fetch("deleted_schedule", name=name):
        await require_job(
            tx, job, hint=f"restore the job first: `rota job restore {job}`"
        )  # its lock before the cursor's
        await tx.fetch("lock_cursor", no=no)
        for row in await tx.fetch("read_deleted", id=id):
            return schedule_row(row)
    return None


async def restore(tx: Tx, row: ScheduleRow, new_id: NewId, actor: str | None) -> None:
    """Undo the deletion of a schedule, which the caller has locked; no other has its name.

    It goes on from now: the time since it was deleted is like a pause that nothing catches up with. It keeps its
    revisions, its number of runs and its own pause; whether its job is paused may have changed meanwhile.
    """
    definition = row.definition
    job_paused = len(await tx.fetch("job_is_paused", job=definition.job))
    await job_triggers.heed(tx, row.id, row.name, definition)
    await notifications.heed_schedule(tx, row.name)
    change = Change(note=RESTORED, actor=actor, details={"job": definition.job, "owner": row.owner})
    await revise(tx, row, change, new_id, job_paused=job_paused, tzdata=TZDATA_VERSION)
    if definition.expect is not None:
        await expectations.declare(tx, _subject(row), definition.expect)


async def rest_anew(tx: Tx, row: ScheduleRow, new_id: NewId) -> None:
    """Decide what passed while the schedule rested, so that a resume does not catch up with it. It rests on."""
    ((note, actor),) = await tx.fetch("newest_note", id=row.id)
    facts = await pause_facts(tx, row)
    await revise(tx, row, Change(note=note, actor=actor, noted=False), new_id, facts=facts)


async def revise(
    tx: Tx,
    row: ScheduleRow,
    change: Change,
    new_id: NewId,
    *,
    facts: dict[str, str | None] | None = None,
    deleted: bool = False,
    **changed: Any,
) -> None:
    """Settle what is due under the old revision, and begin the new one now."""
    ((now,),) = await tx.fetch("now")
    row = await _settle(tx, row, new_id, int(now))
    await _give_up(tx, row, int(now))
    if facts is None and row.paused_at is not None:
        facts = await pause_facts(tx, row)
    was = row
    row = msgspec.structs.replace(row, **changed, revision=row.revision + 1, cursor_at=max(int(now), row.cursor_at))
    row, earliest = await _after_its_last_run(tx, was, row, int(now))
    row = _placed(row, earliest, deleted=deleted)
    row = await _unfolded(tx, was, row)
    await _write(tx, row, facts, deleted=deleted)
    await _note(tx, row, change, valid_from=row.cursor_at, active=row.names and not deleted)


async def _settle(tx: Tx, row: ScheduleRow, new_id: NewId, now: int, catch_up: CatchUp | None = None) -> ScheduleRow:
    """Plan every plan time up to now under the current revision, as many as one transaction may hold."""
    providers: Providers = {row.provider: tuple(await open_scopes(tx, row.id))} if row.provider else {}
    runs = 0
    while row.active and row.next_plan is not None and row.next_plan <= now and runs < MOST_RUNS:
        planning = await plan_rows(tx, [row], new_id, providers, settle=True, catch_up=catch_up)
        runs += planning.runs
        (columns,) = await tx.fetch("read_locked", no=row.cursor_no)
        before, row = row, schedule_row(columns)
        if row == before:  # it cannot be planned: its trouble is noted
            break
    return row


async def _unfolded(tx: Tx, was: ScheduleRow, row: ScheduleRow) -> ScheduleRow:
    """Move the open run from the cursor to a lane row, if the lanes change.

    The cursor can hold the open run of a single, known scope only.
    """
    if was.open_plan is None or (was.definition.lanes, was.provider) == (row.definition.lanes, row.provider):
        return row
    (scope,) = was.definition.lanes
    open_run = {"kind": scope.kind, "name": scope.id, "plan_time": was.open_plan}
    await tx.fetch("unfold_open_run", id=row.id, **open_run)
    return msgspec.structs.replace(row, open_plan=None)


async def _give_up(tx: Tx, row: ScheduleRow, now: int) -> None:
    """Record as missed what was not planned while its revision lasted, so that no one waits for a long backlog."""
    if not row.active or row.next_plan is None or row.next_plan > now or row.definition.follows is not None:
        return
    times = row.standing.times
    count, last = times.count(row.cursor_at, now), times.prev(now + 1)
    if count:
        reason = "it was not planned before the schedule was changed"
        await tx.fetch("insert_ranges", [(row.id, row.next_plan, last, reason, count)])
        await tell_missed(tx, [(row, Gap(row.next_plan, last or row.next_plan, count, reason))])


async def pause_facts(tx: Tx, row: ScheduleRow) -> dict[str, str | None]:
    ((paused_by, reason),) = await tx.fetch("pause_facts", id=row.id)
    return {"paused_by": paused_by, "pause_reason": reason}


async def _after_its_last_run(tx: Tx, was: ScheduleRow, row: ScheduleRow, now: int) -> tuple[ScheduleRow, int]:
    """Keep the distance of a schedule that follows its own runs from the end of its last run.

    Return the row, with the run that it awaits if one is live, and the earliest time to plan the next.
    """
    before, after = was.definition.follows, row.definition.follows
    if before is None or after is None or not was.fired:
        return row, now
    if was.next_plan is not None:
        return row, max(now, was.next_plan - in_micros(before) + in_micros(after))
    if not row.active or row.awaits is not None:
        return row, now
    (scope,) = row.definition.lanes
    for id, state, finished_at in await tx.fetch("last_planned", id=row.id, kind=scope.kind, name=scope.id):
        if state is None:
            return msgspec.structs.replace(row, awaits=str(id)), now
        return row, max(now, finished_at + in_micros(after))
    return row, now


def _placed(row: ScheduleRow, now: int, *, deleted: bool = False) -> ScheduleRow:
    """Return the row with its next plan time after the cursor, or none if it is not to be planned.

    For a schedule that follows its own runs, not before `now`.
    """
    standing = row.standing
    if deleted or not row.active or standing.room == 0:
        return msgspec.structs.replace(row, next_plan=None, awaits=None)
    if row.definition.follows is None:
        return msgspec.structs.replace(row, next_plan=standing.times.next(row.cursor_at), awaits=None)
    if row.awaits is not None:
        return row
    at = -(-max(now, row.cursor_at + 1) // SECOND) * SECOND
    return msgspec.structs.replace(row, next_plan=standing.times.next_allowed(at))


def _next_at(row: ScheduleRow) -> int | None:
    if row.paused_at is not None:
        return row.resume_at
    return row.standing.next_at


async def _write(
    tx: Tx, row: ScheduleRow, facts: dict[str, str | None] | None = None, *, deleted: bool = False
) -> None:
    await tx.fetch(
        "change_schedule",
        id=row.id,
        job=row.definition.job,
        definition=row.text,
        declared=row.declared,
        owner=row.owner,
        revision=row.revision,
        enabled=row.enabled,
        paused_at=row.paused_at,
        resume_at=row.resume_at,
        job_paused=row.job_paused,
        zoned=int(is_zoned(row.definition.rule)),
        deleted=int(deleted),
        **(facts or {"paused_by": None, "pause_reason": None}),
    )
    await tx.fetch(
        "move_cursor",
        no=row.cursor_no,
        cursor_at=row.cursor_at,
        next_plan=row.next_plan,
        next_at=None if deleted else _next_at(row),
        open_plan=row.open_plan,
        awaits=row.awaits,
        fired=row.fired,
        tzdata=row.tzdata,
        provider=row.provider,
    )


async def _note(tx: Tx, row: ScheduleRow, change: Change, *, valid_from: int, active: bool) -> None:
    await tx.fetch(
        "insert_revision",
        id=row.id,
        no=row.revision,
        valid_from=valid_from,
        definition=row.text,
        tzdata=row.tzdata,
        active=int(active),
        note=change.note,
        actor=change.actor,
    )
    if change.noted:
        details = {"schedule_id": row.id, "revision": row.revision, **change.details}
        await audit.note(tx, "schedule", row.name, change.type or type_of(change.note), change.actor, details)
