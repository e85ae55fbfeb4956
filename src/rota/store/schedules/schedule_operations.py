"""Store operations on schedules. Each is one transaction and may be repeated."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.unique import KeyHold
from rota.core.runs.run import Run
from rota.core.schedules.recent_runs import Recent, checked_recent
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import FAILING, LATE, Schedule, ScheduleDefinition
from rota.core.schedules.view import trouble_of
from rota.errors import ChangedMeanwhile, DuplicateSchedule, UnknownSchedule
from rota.store.databases.database import Database, Row, Tx, Work
from rota.store.monitoring import recent_runs
from rota.store.planning.plan import NewId
from rota.store.runs import idempotency, read
from rota.store.schedules import change as schedule_changes
from rota.store.schedules import documents, trigger_now
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


class Surroundings(msgspec.Struct, frozen=True):
    """Facts that definitions are checked against, as of one instant: schedules and jobs by name, and the time."""

    schedules: Mapping[str, Schedule]
    jobs: Mapping[str, JobDefinition]
    now: int


_TROUBLES = {
    FAILING: "exists (select 1 from rota_lane l where l.schedule_id = rota_schedule_now.id and l.failures >= 3)",
    LATE: "next_at < :now - 10000000",
}
"""Conditions of schedules in trouble, as attention has them."""


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
    ) -> Schedule:
        id = self._new_id()

        async def body(tx: Tx) -> Schedule:
            await schedule_changes.create(tx, id, name, definition, owner, declared=declared, actor=actor)
            return await read_schedule(tx, name)

        return await self._transact(body)

    async def update(
        self, name: str, definition: ScheduleDefinition, change: Change, *, expected: ScheduleDefinition | None = None
    ) -> Schedule | None:
        """Change a schedule. Return None, and do nothing, if it is not as `expected` (lost update)."""

        async def apply(tx: Tx, row: ScheduleRow) -> Schedule | None:
            if expected is not None and row.definition not in (expected, definition):
                return None
            await schedule_changes.update(tx, row, definition, change, self._new_id)
            return await read_schedule(tx, name)

        return await self._changing(name, apply, job=definition.job)

    async def apply(
        self, owner: str, wanted: Mapping[str, ScheduleDefinition], gone: Collection[str], actor: str | None
    ) -> None:
        """Create and change the schedules `wanted` under one owner, and delete those that are `gone`: all or none."""
        ids = {name: self._new_id() for name in wanted}
        await self._transact(lambda tx: documents.apply(tx, owner, wanted, gone, ids, actor, self._new_id))

    async def declare(self, name: str, definition: ScheduleDefinition, change: Change) -> None:
        """Apply a changed declaration, unless another process has applied it since."""

        async def apply(tx: Tx, row: ScheduleRow) -> None:
            if row.declared != change.declared:
                await schedule_changes.update(tx, row, definition, change, self._new_id)

        await self._changing(name, apply, job=definition.job)

    async def pause(
        self, name: str, reason: str | None, actor: str | None, until: int | Callable[[int], int] | None
    ) -> Schedule:
        """Pause a schedule. `until` is when the pause ends, or tells it from the time when it begins."""
        ends = [] if callable(until) else [until]  # decided once: a repetition must not end later

        async def apply(tx: Tx, row: ScheduleRow) -> Schedule:
            if callable(until) and not ends:
                ((now,),) = await tx.fetch("now")
                ends.append(until(int(now)))
            await schedule_changes.pause(tx, row, self._new_id, reason=reason, actor=actor, until=ends[0])
            return await read_schedule(tx, name)

        return await self._changing(name, apply)

    async def resume(self, name: str, mode: str, actor: str | None) -> Schedule:
        async def apply(tx: Tx, row: ScheduleRow) -> Schedule:
            await schedule_changes.resume(tx, row, self._new_id, mode=mode, actor=actor)
            return await read_schedule(tx, name)

        return await self._changing(name, apply)

    async def delete(self, name: str, actor: str | None, as_expected: Callable[[int], bool] = lambda _: True) -> None:
        """Delete a schedule, if its revision is `as_expected`."""
        tried: list[str] = []

        async def body(tx: Tx) -> None:
            existing = await schedule_changes.find(tx, name)
            if tried and (existing is None or existing.id not in tried):
                return  # an earlier try, whose answer got lost, has deleted it; a new one of this name stays
            row = existing or await schedule_changes.locked(tx, name)
            if not as_expected(row.revision):
                raise ChangedMeanwhile(f"schedule {name!r}")
            tried.append(row.id)
            await schedule_changes.delete(tx, row, self._new_id, actor)

        await self._transact(body)

    async def restore(self, name: str, actor: str | None) -> Schedule:
        """Undo the deletion of the schedule that had this name last."""
        tried: list[str] = []

        async def body(tx: Tx) -> Schedule:
            if (existing := await find_schedule(tx, name)) is not None:
                if existing.id in tried:
                    return existing  # an earlier try, whose answer got lost, has restored it
                raise DuplicateSchedule(
                    name, hint=f"update it with the deleted one, as `rota audit --subject {name}` shows it"
                )
            row = await schedule_changes.find_deleted(tx, name)
            if row is None:
                names = [other for (other,) in await tx.fetch("deleted_names")]
                raise UnknownSchedule(name, names, otherwise="a deleted schedule is kept for 30 days")
            tried.append(row.id)
            await schedule_changes.restore(tx, row, self._new_id, actor)
            return await read_schedule(tx, name)

        return await self._transact(body)

    async def trigger(
        self,
        name: str,
        scope: Scope | None,
        *,
        force: bool,
        named: Sequence[Scope] = (),
        actor: str | None = None,
        request: KeyHold | None = None,
    ) -> list[Run]:
        """Trigger a schedule now. Return the runs.

        Repeated after an unknown outcome only if there is a `request` to recognize it by: otherwise it could trigger
        twice. `named` are the scopes that its provider names now, if it could be called.
        """

        async def body(tx: Tx) -> list[Run]:
            row = await schedule_changes.locked(tx, name)
            if request is not None and (made := await idempotency.asked_before(tx, request)):
                return [await read.get_run(tx, id) for id in made]
            scopes = await trigger_now.scopes_of(tx, row, scope, named)
            run_ids = await trigger_now.trigger(tx, row, self._new_id, scopes, force=force, actor=actor)
            if request is not None:
                await idempotency.remember(tx, request, run_ids)
            return [await read.get_run(tx, id) for id in run_ids]

        return await self._database.transact(body, repeatable=request is not None)

    async def get(self, name: str, recent: int | None = None) -> Schedule | None:
        """Return a schedule, with its last `recent` runs."""

        async def body(tx: Tx) -> Schedule | None:
            schedule = await find_schedule(tx, name)
            if schedule is None or recent is None:
                return schedule
            return (await _with_recent(tx, [schedule], recent))[0]

        return await self._database.read(body)

    async def names(self) -> list[str]:
        async def body(tx: Tx) -> list[str]:
            return [name for (name,) in await tx.fetch("schedule_names")]

        return await self._database.read(body)

    async def surroundings(
        self,
        names: Sequence[str],
        jobs_of: Callable[[Mapping[str, Schedule]], Iterable[str]],
        *,
        owner: str | None = None,
    ) -> Surroundings:
        """Return those of the schedules that exist, all schedules of `owner`, and the jobs that `jobs_of` names."""

        async def body(tx: Tx) -> Surroundings:
            rows = () if owner is None else await tx.fetch("schedules_of_owner", owner=owner)
            schedules = {schedule.name: schedule for schedule in map(schedule_of, rows)}
            others = [(name,) for name in names if name not in schedules]
            for name, _, _ in await tx.fetch("declared_schedules", others) if others else ():
                schedules[name] = await read_schedule(tx, name)
            jobs = {job: await read.job(tx, job) for job in jobs_of(schedules)}
            ((now,),) = await tx.fetch("now")
            return Surroundings(schedules, {name: job for name, job in jobs.items() if job is not None}, int(now))

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
        recent: int | None = None,
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
        if state in _TROUBLES:
            conditions.append(_TROUBLES[state])
            state = "active"
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
            page = await _with_trouble(tx, schedules[:limit])
            return page if recent is None else await _with_recent(tx, page, recent)

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


async def find_schedule(tx: Tx, name: str) -> Schedule | None:
    """Return a schedule; None if there is none of that name."""
    rows = await tx.fetch("get_schedule", name=name)
    return (await _with_trouble(tx, [schedule_of(rows[0])]))[0] if rows else None


async def read_schedule(tx: Tx, name: str) -> Schedule:
    """Return a schedule, or raise `UnknownSchedule`."""
    schedule = await find_schedule(tx, name)
    if schedule is None:
        raise UnknownSchedule(name, [other for (other,) in await tx.fetch("schedule_names")])
    return schedule


async def _with_trouble(tx: Tx, schedules: Sequence[Schedule]) -> list[Schedule]:
    """Add the trouble of those that are overdue because no planner knows their scope provider."""
    if all(schedule.definition.provider is None for schedule in schedules):
        return list(schedules)
    ((now,),) = await tx.fetch("now")
    return [replace(schedule, trouble=trouble_of(schedule, instant(int(now)))) for schedule in schedules]


async def _with_recent(tx: Tx, schedules: Sequence[Schedule], limit: int) -> list[Schedule]:
    names = [schedule.name for schedule in schedules]
    runs = await recent_runs.recent(tx, names, checked_recent(len(names), limit))
    return [replace(schedule, recent=runs.get(schedule.name, Recent())) for schedule in schedules]


def _like(text: str | None) -> str | None:
    """Return the text as a `like` pattern, with wildcards escaped by `!`."""
    return None if not text else f"%{re.sub('[!%_]', lambda match: '!' + match[0], text.translate(_SMALL))}%"


def schedule_of(row: Row) -> Schedule:
    """Build a schedule from the columns of `{schedule_columns}`, in their order."""
    (id, name, job, definition, owner, revision, enabled, paused_at, paused_by, pause_reason, resume_at, job_paused,
     cursor_at, next_plan, awaits, fired, tzdata, trouble, created_at, updated_at, job_cancelled_at) = row  # fmt: skip
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
        job_cancelled=job_cancelled_at is not None,
        cursor_at=instant(cursor_at),
        next_plan=None if next_plan is None else instant(next_plan),
        awaits=None if awaits is None else str(awaits),
        fired=fired,
        tzdata=tzdata,
        trouble=trouble,
        created_at=instant(created_at),
        updated_at=instant(updated_at),
    )
