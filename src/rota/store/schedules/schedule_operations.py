"""Store operations on schedules. Each is one transaction and may be repeated."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any, TypeVar

import msgspec

from rota.core.jobs.unique import KeyHold
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import Schedule, ScheduleDefinition
from rota.store.databases.database import Database, Row, Tx, Work
from rota.store.planning.plan import NewId
from rota.store.runs import idempotency
from rota.store.schedules import change as schedule_changes
from rota.store.schedules import trigger_now
from rota.store.schedules.schedule_row import ScheduleRow, decoded, readable
from rota.values.instants import instant
from rota.values.scope import Scope

T = TypeVar("T")

PLANNER = "\x01planner"
"""The name under which planners are notified of changes, as if it were a queue. No queue can have this name."""
_BITE = 1_000
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
"""ASCII only: the databases differ in, or lack, lower case of other letters."""


class Declared(msgspec.Struct, frozen=True):
    """A schedule as code or a file declares it."""

    name: str
    definition: ScheduleDefinition
    fingerprint: str


class ScheduleStore:
    def __init__(self, database: Database, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id

    async def create(
        self,
        name: str,
        definition: ScheduleDefinition,
        owner: str,
        *,
        declared: str | None = None,
        actor: str | None = None,
    ) -> None:
        id = self._new_id()
        await self._transact(
            lambda tx: schedule_changes.create(tx, id, name, definition, owner, declared=declared, actor=actor)
        )

    async def update(
        self, name: str, definition: ScheduleDefinition, change: Change, *, expected: ScheduleDefinition | None = None
    ) -> bool:
        """Change a schedule. Return False, and do nothing, if it is not as `expected` (lost update)."""

        async def apply(tx: Tx, row: ScheduleRow) -> bool:
            if expected is not None and row.definition not in (expected, definition):
                return False
            await schedule_changes.update(tx, row, definition, change, self._new_id)
            return True

        return await self._changing(name, apply, job=definition.job)

    async def declare(self, name: str, definition: ScheduleDefinition, change: Change) -> None:
        """Apply a changed declaration, unless another process has applied it since."""

        async def apply(tx: Tx, row: ScheduleRow) -> None:
            if row.declared != change.declared:
                await schedule_changes.update(tx, row, definition, change, self._new_id)

        await self._changing(name, apply, job=definition.job)

    async def pause(self, name: str, reason: str | None, actor: str | None, until: int | None) -> None:
        await self._changing(
            name, lambda tx, row: schedule_changes.pause(tx, row, self._new_id, reason=reason, actor=actor, until=until)
        )

    async def resume(self, name: str, mode: str, actor: str | None) -> None:
        await self._changing(
            name, lambda tx, row: schedule_changes.resume(tx, row, self._new_id, mode=mode, actor=actor)
        )

    async def delete(self, name: str, actor: str | None) -> None:
        tried: list[str] = []

        async def body(tx: Tx) -> None:
            existing = await schedule_changes.find(tx, name)
            if tried and (existing is None or existing.id not in tried):
                return  # an earlier try, whose answer got lost, has deleted it; a new one of this name stays
            row = existing or await schedule_changes.locked(tx, name)
            tried.append(row.id)
            await schedule_changes.delete(tx, row, self._new_id, actor)

        await self._transact(body)

    async def trigger(
        self,
        name: str,
        scope: Scope | None,
        *,
        force: bool,
        named: Sequence[Scope] = (),
        actor: str | None = None,
        request: KeyHold | None = None,
    ) -> list[str]:
        """Trigger a schedule now. Return the ids of the runs.

        Repeated after an unknown outcome only if there is a `request` to recognize it by: otherwise it could trigger
        twice. `named` are the scopes that its provider names now, if it could be called.
        """

        async def body(tx: Tx) -> list[str]:
            row = await schedule_changes.locked(tx, name)
            if request is not None and (made := await idempotency.asked_before(tx, request)):
                return made
            scopes = await trigger_now.scopes_of(tx, row, scope, named)
            run_ids = await trigger_now.trigger(tx, row, self._new_id, scopes, force=force, actor=actor)
            if request is not None:
                await idempotency.remember(tx, request, run_ids)
            return run_ids

        return await self._database.transact(body, repeatable=request is not None)

    async def get(self, name: str) -> Schedule | None:
        async def body(tx: Tx) -> Schedule | None:
            for row in await tx.fetch("get_schedule", name=name):
                return schedule_of(row)
            return None

        return await self._database.read(body)

    async def names(self) -> list[str]:
        async def body(tx: Tx) -> list[str]:
            return [name for (name,) in await tx.fetch("schedule_names")]

        return await self._database.read(body)

    async def list(
        self,
        *,
        job: str | None = None,
        owner: str | None = None,
        text: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Schedule]:
        """Return schedules by name.

        `text` is a part of the name, `after` the last name of the page before. Schedules that only a newer rota can
        read are left out.
        """
        filters = {"job": job, "owner": owner}
        conditions = ["deleted_at is null", "name > :after"]
        conditions += [f"{column} = :{column}" for column, value in filters.items() if value]
        conditions += ["{name_in_small} like :text escape '!'"] if text else []
        values: dict[str, Any] = {name: value for name, value in {**filters, "text": _like(text)}.items() if value}
        bite = limit if state is None else max(limit, _BITE)  # a state follows from several columns: filtered here
        sql = (
            f"select {{schedule_columns}} from rota_schedule_now where {' and '.join(conditions)} "
            "order by name limit :limit"
        )

        async def body(tx: Tx) -> list[Schedule]:
            schedules: list[Schedule] = []
            last = after or ""
            while len(schedules) < limit:
                rows = await tx.fetch_sql(sql, limit=bite, after=last, **values)
                for row in rows:
                    _, last, _, definition, *_ = row
                    if readable(definition) is None:
                        continue
                    schedule = schedule_of(row)
                    if state is None or schedule.state == state:
                        schedules.append(schedule)
                if len(rows) < bite:
                    break
            return schedules[:limit]

        return await self._database.read(body)

    async def declared(self, names: Sequence[str]) -> Mapping[str, tuple[str | None, str]]:
        """Return name → (fingerprint of the last declaration, owner), of those that exist."""

        async def body(tx: Tx) -> dict[str, tuple[str | None, str]]:
            rows = await tx.fetch("declared_schedules", [(name,) for name in names])
            return {name: (fingerprint, owner) for name, fingerprint, owner in rows}

        return await self._database.read(body) if names else {}

    async def _changing(
        self, name: str, work: Callable[[Tx, ScheduleRow], Coroutine[Any, Any, T]], *, job: str | None = None
    ) -> T:
        """Lock a schedule and apply `work` to it.

        `job`, the one that it is to have, is locked before the cursor, as everybody does who creates or pauses
        schedules.
        """

        async def body(tx: Tx) -> T:
            if job is not None:
                await schedule_changes.require_job(tx, job)
            return await work(tx, await schedule_changes.locked(tx, name))

        return await self._transact(body)

    async def _transact(self, work: Work[T]) -> T:
        answer = await self._database.transact(work)
        self._database.notify([PLANNER])
        return answer


def _like(text: str | None) -> str | None:
    """Return the text as a `like` pattern, with wildcards escaped by `!`."""
    return None if not text else f"%{re.sub('[!%_]', lambda match: '!' + match[0], text.translate(_SMALL))}%"


def schedule_of(row: Row) -> Schedule:
    """Build a schedule from the columns of `{schedule_columns}`, in their order."""
    (id, name, job, definition, owner, revision, enabled, paused_at, paused_by, pause_reason, resume_at, job_paused,
     cursor_at, next_plan, awaits, fired, tzdata, trouble, created_at, updated_at) = row  # fmt: skip
    return Schedule(
        id=str(id),
        name=name,
        job=job,
        definition=decoded(definition),
        owner=owner,
        revision=revision,
        enabled=bool(enabled),
        paused_at=None if paused_at is None else instant(paused_at),
        paused_by=paused_by,
        pause_reason=pause_reason,
        resume_at=None if resume_at is None else instant(resume_at),
        job_paused=bool(job_paused),
        cursor_at=instant(cursor_at),
        next_plan=None if next_plan is None else instant(next_plan),
        awaits=None if awaits is None else str(awaits),
        fired=fired,
        tzdata=tzdata,
        trouble=trouble,
        created_at=instant(created_at),
        updated_at=instant(updated_at),
    )
