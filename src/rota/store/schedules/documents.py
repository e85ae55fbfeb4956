"""Apply documents of schedules: all of them in one transaction, or none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import DuplicateSchedule
from rota.store.databases.database import Tx
from rota.store.planning.plan import NewId
from rota.store.schedules import change as schedule_changes
from rota.store.schedules.schedule_row import ScheduleRow, schedule_row


async def apply(
    tx: Tx,
    owner: str,
    wanted: Mapping[str, ScheduleDefinition],
    gone: Collection[str],
    ids: Mapping[str, str],
    actor: str | None,
    new_id: NewId,
) -> None:
    """Create or change the schedules `wanted`, with these ids if they are new, and delete those that are `gone`.

    Apply it again if its outcome is unknown.
    """
    for job in sorted({definition.job for definition in wanted.values()}):
        await schedule_changes.require_job(tx, job)
    rows = await _locked(tx, [*wanted, *gone])
    for deleted in (rows[name] for name in gone if name in rows):
        if deleted.owner == owner:
            await schedule_changes.delete(tx, deleted, new_id, actor)
    for name, definition in wanted.items():
        row = rows.get(name)
        if row is None:
            await schedule_changes.create(tx, ids[name], name, definition, owner, declared=None, actor=actor)
        elif row.owner != owner:  # somebody else has just made it
            raise DuplicateSchedule(name)
        else:
            change = Change(note=f"applied by {owner}", actor=actor, details={"owner": owner})
            await schedule_changes.update(tx, row, definition, change, new_id)


async def _locked(tx: Tx, names: Sequence[str]) -> dict[str, ScheduleRow]:
    # All cursors before anything else: a change settles what was due, which takes runs, limits and keys.
    numbers = await tx.fetch("lock_schedules_by_name", [(name,) for name in names]) if names else ()
    rows = await tx.fetch("read_locked_schedules", numbers) if numbers else ()
    return {row.name: row for row in map(schedule_row, rows)}
