"""Changes to all schedules of a job that is paused, resumed, cancelled or dropped as a whole."""

from __future__ import annotations

import msgspec

from rota.core.runs.claim import NIL_ID
from rota.core.schedules.revisions import JOB_PAUSED, Change
from rota.store.databases.database import Tx
from rota.store.planning.plan import NewId
from rota.store.schedules import change as schedule_changes
from rota.store.schedules.schedule_row import ScheduleRow, schedule_row

_BITE = 200
_ALL = 2**31 - 1


async def pause_schedules_of(tx: Tx, job: str, after: str, actor: str | None, new_id: NewId) -> str | None:
    """Mark a batch of the job's schedules as paused by it. Return the id to continue after, or None."""
    rows, last = await _of_job(tx, job, after, job_paused=0)
    if not await tx.fetch("job_is_paused", job=job):  # it was resumed, or dropped, before the pause came to these
        return None
    for row in rows:
        facts = await schedule_changes.pause_facts(tx, row)
        change = Change(note=JOB_PAUSED, actor=actor, noted=False)
        await schedule_changes.revise(tx, row, change, new_id, facts=facts, job_paused=1)
    return last


async def resume_schedules_of(tx: Tx, job: str, after: str, mode: str, actor: str | None, new_id: NewId) -> str | None:
    """Resume a batch of the job's schedules. `mode` decides about the plan times that passed meanwhile.

    Return the id to continue after, or None.
    """
    rows, last = await _of_job(tx, job, after, job_paused=1)
    for row in rows:
        await schedule_changes.resume_with(tx, row, new_id, mode, actor, job_paused=0)
    return last


async def disable_schedules_of(
    tx: Tx, job: str, after: str, actor: str | None, new_id: NewId
) -> tuple[int, str | None]:
    """Disable a batch of the schedules of a job that is cancelled. Return how many, and the id to continue after or
    None."""
    rows, last = await _of_job(tx, job, after, enabled=1)
    for row in rows:
        await _disable(tx, row, actor, new_id)
    return len(rows), last


async def _disable(tx: Tx, row: ScheduleRow, actor: str | None, new_id: NewId) -> None:
    definition = msgspec.structs.replace(row.definition, enabled=False)
    change = Change(note="job cancelled", actor=actor, noted=False)
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


def own_owner(job: str) -> str:
    """Return the owner of the schedule that was created together with its job."""
    return f"job:{job}"


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
