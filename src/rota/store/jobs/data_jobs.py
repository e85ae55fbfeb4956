"""Jobs that are data: made, changed and dropped; and what workers ask to hear of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.runs.run import MadeJob, NewRun
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import Conflict, DuplicateSchedule, JobInUse, UnknownJob
from rota.store.alerts import expectations
from rota.store.alerts.expectations import Subject
from rota.store.databases.database import Database, Row, Tx
from rota.store.jobs import jobs
from rota.store.ledger import audit
from rota.store.limits import admit
from rota.store.planning.plan import NewId
from rota.store.runs import enqueue
from rota.store.schedules import change, schedules_of_job
from rota.store.schedules.schedule_operations import PLANNER
from rota.store.workers import restrict
from rota.values.durations import in_micros

CODE = "code"
_REMEMBERED = in_micros(timedelta(days=7))


Seen = tuple[int, int, int]
"""Tells whether anything has changed: how many there are, how many of them were dropped, when one was last made."""


class DataJobChanges(msgspec.Struct, frozen=True):
    """`names`: of all there are; `definitions`: those that were not held, as text, for some may be of a newer rota."""

    seen: Seen
    names: set[str]
    definitions: list[str]


async def require_free(tx: Tx, names: Iterable[str]) -> None:
    """Code does not take the name of a job that somebody made."""
    rows = [(name,) for name in names]
    for (name,) in await tx.fetch("taken_jobs", rows) if rows else ():
        raise Conflict(
            f"job {name!r} is declared in code, and was made by a command, too", hint=f"`rota job rm {name}`, or rename"
        )


class NewSchedule(msgspec.Struct, frozen=True):
    """The schedule that comes with a job."""

    name: str
    definition: ScheduleDefinition


RunOf = Callable[[JobDefinition], NewRun]
"""The first run of a job as it was stored: the same, with the same id, each time that it is asked for."""


class DataJobStore:
    def __init__(self, database: Database, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id

    async def changes(self, seen: Seen, held: Collection[tuple[str, int]]) -> DataJobChanges | None:
        """None while nothing has changed since `seen`; `held` are versions that the asker has."""

        async def body(tx: Tx) -> DataJobChanges | None:
            ((count, dropped, last),) = await tx.fetch("data_jobs_seen")
            if (count, dropped, last) == seen:
                return None
            versions = [
                (name, version) for name, version in await tx.fetch("data_job_versions", dropped_since=_REMEMBERED)
            ]
            missing = [one for one in versions if one not in held]
            rows = await tx.fetch("data_job_definitions", missing) if missing else []
            return DataJobChanges((count, dropped, last), {name for name, _ in versions}, [row[0] for row in rows])

        return await self._database.read(body)

    async def create(self, definition: JobDefinition, owner: str, actor: str | None) -> JobDefinition:
        """Its version is the next one. Added again just the same, it is there already."""
        return (await self.create_with(definition, owner, actor)).job

    async def create_with(
        self,
        definition: JobDefinition,
        owner: str,
        actor: str | None,
        *,
        schedule: NewSchedule | None = None,
        run: RunOf | None = None,
    ) -> MadeJob:
        """The same with its own schedule and its first run, in one transaction: all of it or nothing.

        What an earlier request of the same words has made of it is there already.
        """
        schedule_id = self._new_id()

        async def body(tx: Tx) -> MadeJob:
            made = await _added(tx, definition, owner)
            if schedule is not None:  # its cursor before the limits and runs that a new version touches
                await _scheduled(tx, schedule_id, schedule, actor)
                tx.wake(PLANNER)
            if made.new:
                await _declare(tx, made.job, actor, "added")
            if run is None:
                return made
            new = run(made.job)
            (answer,) = await enqueue.enqueue_again(tx, [new])
            return msgspec.structs.replace(made, run=answer)

        return await self._database.transact(body)

    async def get(self, name: str) -> JobDefinition:
        """With its secrets."""

        async def body(tx: Tx) -> JobDefinition:
            return _read((await _own(tx, name))[0][3])

        return await self._database.read(body)

    async def update(self, definition: JobDefinition, actor: str | None) -> JobDefinition | None:
        """A new version; None if the newest is not the one any more that `definition` was made from."""

        async def body(tx: Tx) -> JobDefinition | None:
            await tx.fetch("lock_job", job=definition.name)
            rows = await _own(tx, definition.name)
            newest = _read(rows[0][3])
            if newest.version != definition.version:
                return None
            if newest == definition:
                return newest
            made = await _insert(tx, definition, rows, rows[0][1])
            if made is not None:
                await _declare(tx, made, actor, "changed")
            return made

        return await self._database.transact(body)

    async def delete(self, name: str, actor: str | None, *, force: bool) -> list[str]:
        """Its own schedule goes with it. Dropped twice, it was dropped the first time.

        With `force`, other schedules of it are disabled, and the answer are its runs that are yet to be cancelled.
        """

        async def body(tx: Tx) -> list[str]:
            await tx.fetch("lock_job_to_drop", job=name)
            rows = await tx.fetch("job_versions", job=name)
            if rows and all(dropped is not None for _, _, dropped, _ in rows):
                return await jobs.left_of(tx, name) if force else []
            await _own(tx, name)
            await schedules_of_job.drop_schedules_of(tx, name, actor, self._new_id, disable=force)
            # Counted under the locks of the job and its cursors: nobody makes a schedule or a run of it meanwhile.
            ((schedules, runs),) = await tx.fetch("job_uses", job=name)
            if (schedules or runs) and not force:
                raise JobInUse(name, schedules, runs)
            await tx.fetch("drop_data_job", job=name)
            await tx.fetch("resume_job", job=name)  # or the next one of this name would be born paused
            await expectations.delete(tx, Subject("job", name, name), actor=actor)
            await audit.note(tx, "job", name, "dropped", actor, {})
            return await jobs.left_of(tx, name) if runs else []

        return await self._database.transact(body)


async def _locked(tx: Tx, name: str) -> list[Row]:
    await tx.fetch("lock_job", job=name)
    return list(await tx.fetch("job_versions", job=name))


async def _own(tx: Tx, name: str) -> list[Row]:
    """Its versions, the newest first."""
    rows = list(await tx.fetch("job_versions", job=name))
    live = [row for row in rows if row[2] is None]
    if not live:
        raise UnknownJob(name)
    if live[0][1] == CODE:
        raise Conflict(f"job {name!r} is declared in code", hint="change it there")
    return rows


async def _added(tx: Tx, definition: JobDefinition, owner: str) -> MadeJob:
    """The job's row; what follows from it is yet to be declared, if it is new."""
    for _ in range(2):  # a first one has no row to lock: whoever loses finds the other's the second time
        rows = await _locked(tx, definition.name)
        live = [row for row in rows if row[2] is None]
        if live and live[0][1] != CODE:
            found = _read(live[0][3])
            if msgspec.structs.replace(definition, version=found.version) == found:
                return MadeJob(found, new=False)
        if live:
            hint = "change it: `rota job update`" if live[0][1] != CODE else "it is declared in code"
            raise Conflict(f"there is a job {definition.name!r} already", hint=hint)
        made = await _insert(tx, definition, rows, owner)
        if made is not None:
            return MadeJob(made, new=True)
    raise Conflict(f"somebody else made a job {definition.name!r} just now", hint="look at it: `rota job get`")


async def _scheduled(tx: Tx, id: str, schedule: NewSchedule, actor: str | None) -> None:
    """The job's own schedule, or the same one that is there already."""
    name, definition = schedule.name, schedule.definition
    owner = schedules_of_job.own_owner(definition.job)
    try:
        await change.create(tx, id, name, definition, owner, declared=None, actor=actor)
    except DuplicateSchedule:
        there = await change.find(tx, name)
        if there is None or there.definition != definition:
            raise


async def _insert(tx: Tx, definition: JobDefinition, rows: list[Row], owner: str) -> JobDefinition | None:
    """The next version of a job; None if somebody else made it meanwhile, whose commit this has waited for."""
    version = max((row[0] for row in rows), default=0) + 1
    made = msgspec.structs.replace(definition, version=version)
    text = msgspec.json.encode(made, order="deterministic").decode()
    facts = {"job": made.name, "version": version, "kind": made.kind, "owner": owner}
    return made if await tx.fetch("add_data_job", **facts, definition=text) else None


async def _declare(tx: Tx, made: JobDefinition, actor: str | None, what: str) -> None:
    """Do what follows from a new version."""
    await admit.declare(tx, made)
    await restrict.declare(tx, made)
    await expectations.declare_job(tx, made)
    await audit.note(tx, "job", made.name, what, actor, {"kind": made.kind, "version": made.version})


def _read(text: str) -> JobDefinition:
    return msgspec.json.decode(text, type=JobDefinition)
