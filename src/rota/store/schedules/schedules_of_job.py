"""Changes to all schedules of a job that is paused, resumed, cancelled or dropped as a whole."""

from __future__ import annotations

import msgspec

from rota.core.runs.claim import NIL_ID
from rota.core.schedules.revisions import JOB_CANCELLED, JOB_PAUSED, Change
from rota.core.schedules.schedule import own_owner
from rota.store.databases.database import Tx
from rota.store.planning.plan import NewId
from rota.store.schedules import change as schedule_changes
from rota.store.schedules.schedule_row import ScheduleRow, schedule_row

_BITE = 200
_ALL = 2**31 - 1


async def pause_schedules_of(tx: Tx, job: str, after: str, actor: str | None, new_id: NewId) -> str | None:
    """Mark a batch of the job's schedules as paused by it. Return the id to continue after, or None."""
    _, last = await _hold_schedules_of(tx, job, after, actor, new_id, JOB_PAUSED)
    return last


async def cancel_schedules_of(
    tx: Tx, job: str, after: str, actor: str | None, new_id: NewId
) -> tuple[list[str], str | None]:
    """Let a batch of the schedules of a cancelled job rest. Return the names of those that were enabled, and the id to
    continue after, or None."""
    names, _, last = await cancel_schedules_with(tx, job, after, actor, new_id)
    return names, last


async def cancel_schedules_with(
    tx: Tx, job: str, after: str, actor: str | None, new_id: NewId
) -> tuple[list[str], bool, str | None]:
    """Do what `cancel_schedules_of` does, and return as second whether any of them had a next plan time."""
    rows, last = await _hold_schedules_of(tx, job, after, actor, new_id, JOB_CANCELLED)
    enabled = [row for row in rows if row.enabled]
    planned = any(row.next_plan is not None or row.awaits is not None or row.paused_at is not None for row in enabled)
    return [row.name for row in enabled], planned, last


async def _hold_schedules_of(
    tx: Tx, job: str, after: str, actor: str | None, new_id: NewId, note: str
) -> tuple[list[ScheduleRow], str | None]:
    """Let a batch of the job's schedules rest until it is resumed. Return them, and the id to continue after."""
    rows, last = await _of_job(tx, job, after, job_paused=0)
    if not await tx.fetch("job_is_paused", job=job):  # it was resumed, or dropped, before its pause came to these
        return [], None
    for row in rows:
        facts = await schedule_changes.pause_facts(tx, row)
        change = Change(note=note, actor=actor, noted=False)
        await schedule_changes.revise(tx, row, change, new_id, facts=facts, job_paused=1)
    return rows, last


async def resume_schedules_of(tx: Tx, job: str, after: str, mode: str, actor: str | None, new_id: NewId) -> str | None:
    """Resume a batch of the job's schedules. `mode` decides about the plan times that passed meanwhile.

    Return the id to continue after, or None.
    """
    rows, last = await _of_job(tx, job, after, job_paused=1)
    for row in rows:
        await schedule_changes.resume_with(tx, row, new_id, mode, actor, job_paused=0)
    return last


async def _disable(tx: Tx, row: ScheduleRow, actor: str | None, new_id: NewId) -> None:
    definition = msgspec.structs.replace(row.definition, enabled=False)
    change = Change(note="job deleted", actor=actor, noted=False)
    await schedule_changes.update(tx, row, definition, change, new_id)


async def drop_schedules_of(tx: Tx, job: str, actor: str | None, new_id: NewId, *, disable: bool) -> None:
    """Delete the own schedule of a job that is dropped, and end the job's pause for the others.

    The caller has locked the job. All its schedules are locked here, also those that stay: a transaction that makes a
    run of a schedule looks for the job while it holds the cursor. `disable`: disable those that stay.
    """
    filters = {"job": job, "job_paused": None, "enabled": None}
    locked = [(no,) for no, _ in await tx.fetch("lock_schedules_of_job", after=NIL_ID, limit=_ALL, **filters)]
    if disable and locked:
        for columns in await tx.fetch("read_locked_of_job", locked, **{**filters, "enabled": 1}):
            row = schedule_row(columns)
            if row.owner != own_owner(job):
                await _disable(tx, row, actor, new_id)
    for columns in await tx.fetch("read_locked_of_job", locked, **filters) if locked else ():
        row = schedule_row(columns)
        if row.owner == own_owner(job):
            await schedule_changes.delete(tx, row, new_id, actor)
        elif row.job_paused:
            await schedule_changes.resume_with(tx, row, new_id, "skip", actor, job_paused=0)


async def _of_job(
    tx: Tx, job: str, after: str, *, job_paused: int | None = None, enabled: int | None = None
) -> tuple[list[ScheduleRow], str | None]:
    """Lock and return a batch of the job's schedules, and the id to continue after (None if there are no more).

    A statement that waited for a lock may return fewer rows than there are, so it is repeated until one finds nothing.
    """
    await tx.fetch("lock_job", job=job)  # lock order: the job before its cursors
    filters = {"job": job, "job_paused": job_paused, "enabled": enabled}
    locked: list[int] = []
    last: str | None = after
    while last is not None and len(locked) < _BITE:
        batch = await tx.fetch("lock_schedules_of_job", after=last, limit=_BITE - len(locked), **filters)
        locked += [no for no, _ in batch]
        last = str(batch[-1][1]) if batch else None
    rows = await tx.fetch("read_locked_of_job", [(no,) for no in locked], **filters) if locked else ()
    return [schedule_row(row) for row in rows], last
