"""Data jobs: create, update and delete them, and tell workers what changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import msgspec

from rota.core.jobs.job import JobDefinition, JobKind, require_flat
from rota.core.jobs.secrets import masked
from rota.core.jobs.status import JobFacts
from rota.core.runs.run import Enqueued, NewRun, Run
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import NewSchedule, OwnSchedule, Schedule, ScheduleMoved, own_owner
from rota.errors import Conflict, DuplicateSchedule, JobInUse, UnknownJob
from rota.store.alerts import expectations
from rota.store.alerts.expectations import Subject
from rota.store.databases.database import Database, Tx
from rota.store.databases.statements import POSTGRES
from rota.store.jobs import cancel_job, jobs, pipeline_stages
from rota.store.ledger import audit
from rota.store.limits import admit, live
from rota.store.planning.plan import NewId
from rota.store.runs import enqueue, read
from rota.store.schedules import change, schedules_of_job
from rota.store.schedules.schedule_operations import PLANNER, schedule_of
from rota.store.workers import restrict
from rota.values.durations import in_micros

CODE = "code"
_LIST = "list the jobs: `rota job list`"
_REMEMBERED = in_micros(timedelta(days=7))
_PIPELINES = 7_307_683  # any number of our own, as in schema/migrate: one definition of a pipeline at a time


Seen = tuple[int, int, int]
"""Fingerprint of all data jobs: number of versions, number of dropped ones, time of the newest."""


class DataJobChanges(msgspec.Struct, frozen=True):
    """Names of all data jobs, and the definitions that the caller did not hold yet.

    Definitions are text, because a newer rota may have written some that this one cannot decode.
    """

    seen: Seen
    names: set[str]
    definitions: list[str]


class _Version(NamedTuple):
    """The columns of `job_versions`, in their order. `text` is JSON."""

    no: int
    owner: str
    dropped_at: int | None
    text: str

    @property
    def definition(self) -> JobDefinition:
        return msgspec.json.decode(self.text, type=JobDefinition)


async def require_free(tx: Tx, names: Iterable[str]) -> None:
    """Raise a Conflict if code declares a job whose name a data job has."""
    rows = [(name,) for name in names]
    for (name,) in await tx.fetch("taken_jobs", rows) if rows else ():
        raise Conflict(
            f"job {name!r} is declared in code, but a data job has this name", hint=f"`rota job rm {name}`, or rename"
        )


class MadeJob(msgspec.Struct, frozen=True):
    """Result of storing a job. `new`: it did not exist before. `schedule` and `run` are those created with it, now or
    before; `enqueued` tells whether the run is new."""

    job: JobDefinition
    new: bool
    facts: JobFacts
    schedule: Schedule | None = None
    enqueued: Enqueued | None = None
    run: Run | None = None


_Made = Callable[[JobFacts], MadeJob]
"""What a transaction made of a job; its facts are read after it."""

Make = Callable[[JobDefinition | None], JobDefinition]
"""Builds a job's definition from the newest stored one, None if there is none. Raises to refuse the change."""

RunOf = Callable[[JobDefinition], NewRun]
"""Builds the first run of a job as it was stored. Must return the same run, with the same id, each time (retries)."""


class DataJobStore:
    def __init__(self, database: Database, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id

    async def changes(self, seen: Seen, held: Collection[tuple[str, int]]) -> DataJobChanges | None:
        """Return what changed since `seen`, or None if nothing did.

        `held` are the (name, version) pairs that the caller has.
        """

        async def body(tx: Tx) -> DataJobChanges | None:
            ((count, dropped, last),) = await tx.fetch("data_jobs_seen")
            if (count, dropped, last) == seen:
                return None
            versions = [
                (name, version) for name, version in await tx.fetch("data_job_versions", dropped_since=_REMEMBERED)
            ]
            missing = [version for version in versions if version not in held]
            texts = [text for (text,) in await tx.fetch("data_job_definitions", missing)] if missing else []
            return DataJobChanges((count, dropped, last), {name for name, _ in versions}, texts)

        return await self._database.read(body)

    async def create(self, definition: JobDefinition, owner: str, actor: str | None) -> JobDefinition:
        """Store a job as its next version. Idempotent: creating the same definition again returns the stored one."""
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
        """Like `create`, with the job's own schedule and its first run, in one transaction.

        Idempotent: whatever an earlier, equal request has created is kept.
        """
        schedule_id = self._new_id()

        async def body(tx: Tx) -> MadeJob | _Made:
            job, new = await _added(tx, definition, owner)
            if schedule is not None:  # its cursor before the limits and runs that a new version touches
                await _scheduled(tx, schedule_id, schedule, actor)
                tx.wake(PLANNER)
            if new:
                await _declare(tx, job, actor, "added")
            enqueued = None
            if run is not None:
                (enqueued,) = await enqueue.enqueue_again(tx, [run(job)])
            made = partial(
                MadeJob,
                job,
                new,
                schedule=None if schedule is None else await _schedule(tx, schedule.name),
                enqueued=enqueued,
                run=None if enqueued is None else await read.get_run(tx, enqueued.id),
            )
            # With a schedule, whose definition took a transaction before, a third one would be too many.
            return made if schedule is None else made(*await jobs.facts(tx, [job.name]))

        result = await self._database.transact(body)
        return result if isinstance(result, MadeJob) else await self._with_facts(definition.name, result)

    async def _with_facts(self, name: str, made: _Made) -> MadeJob:
        """Add the job's facts, in a transaction that only reads: they count all that waits, and on SQLite nobody else
        could write meanwhile."""
        (facts,) = await self._database.read(lambda tx: jobs.facts(tx, [name]))
        return made(facts)

    async def get(self, name: str) -> JobDefinition:
        """Return the newest definition, with its secrets."""

        async def body(tx: Tx) -> JobDefinition:
            newest, *_ = await _require_own(tx, name, await _versions(tx, name))
            return newest.definition

        return await self._database.read(body)

    async def write(
        self,
        name: str,
        make: Make,
        owner: str,
        actor: str | None,
        *,
        create: bool = True,
        schedule: OwnSchedule | None = None,
    ) -> MadeJob:
        """Store what `make` returns as the next version, under the job's lock, so that no change is lost; in the same
        transaction, change or create the job's own schedule.

        Unless `create`, the job must exist. Raise `ScheduleMoved` if its schedule is another than expected.
        """
        schedule_id = self._new_id()

        async def body(tx: Tx) -> _Made:
            if not create:
                await _require_own(tx, name, await _locked_versions(tx, name))
            job, event = await _written(tx, name, make, owner)
            if schedule is not None:  # its cursor before the limits and runs that a new version touches
                await self._reschedule(tx, schedule_id, schedule, actor)
                tx.wake(PLANNER)
            if event is not None:
                await _declare(tx, job, actor, event)
            shown = None if schedule is None else await _schedule(tx, schedule.name)
            return partial(MadeJob, job, event == "added", schedule=shown)

        return await self._with_facts(name, await self._database.transact(body))

    async def _reschedule(self, tx: Tx, id: str, own: OwnSchedule, actor: str | None) -> None:
        row = await change.find(tx, own.name)
        theirs = row is not None and row.owner != own_owner(own.definition.job)
        if own.expected is None and (row is None or theirs):
            await _scheduled(tx, id, NewSchedule(own.name, own.definition), actor)  # which refuses a name that is taken
        elif row is None or theirs or row.definition not in (own.expected, own.definition):
            raise ScheduleMoved(own.name)
        else:
            await change.update(tx, row, own.definition, Change(note="edited", actor=actor), self._new_id)

    async def delete(
        self,
        name: str,
        actor: str | None,
        *,
        force: bool,
        reason: str | None = None,
        check: Callable[[JobDefinition], None] | None = None,
    ) -> list[str]:
        """Drop a job together with its own schedule. Idempotent.

        With `force`, its other schedules are disabled, and what waits to run, of it or of a pipeline that needs it, is
        cancelled for `reason`; the answer are runs that the caller has to cancel. `check` raises to refuse it.
        """

        async def body(tx: Tx) -> list[str]:
            versions = await _locked_versions(tx, name, "lock_job_to_drop")
            if versions and all(version.dropped_at is not None for version in versions):
                if not force:
                    return []
                _, users = await pipeline_stages.users_of(tx, name)
                return await cancel_job.end_left(tx, name, users, reason, actor, self._new_id)
            newest, *_ = await _require_own(tx, name, versions)
            if check is not None:
                check(newest.definition)
            await schedules_of_job.drop_schedules_of(tx, name, actor, self._new_id, disable=force)
            # Counted under the locks of the job and its cursors: nobody makes a schedule or a run of it meanwhile.
            ((schedules, runs),) = await tx.fetch("job_uses", job=name)
            if newest.definition.pipeline:
                ((runs,),) = await tx.fetch("pipeline_uses", job=name)
            pipelines, users = await pipeline_stages.users_of(tx, name)
            if (schedules or runs or users or pipelines) and not force:
                raise JobInUse(name, schedules, max(runs, len(users)), pipelines)
            await tx.fetch("drop_data_job", job=name)
            await tx.fetch("resume_job", job=name)  # or the next one of this name would be born paused
            await live.drop_of_job(tx, name, actor)
            await expectations.delete(tx, Subject("job", name, name), actor=actor)
            await audit.note(tx, "job", name, "dropped", actor, {"definition": _shown(newest.definition)})
            if not runs and not users:
                return []
            return await cancel_job.end_left(tx, name, users, reason, actor, self._new_id)

        return await self._database.transact(body)

    async def restore(self, name: str, actor: str | None, check: Callable[[JobDefinition], None]) -> MadeJob:
        """Store the newest version of a dropped job as its next one. `check` raises to refuse it."""
        tried: list[int] = []

        async def body(tx: Tx) -> _Made:
            versions = await _locked_versions(tx, name)
            if not versions:
                names = [job for (job,) in await tx.fetch("dropped_jobs")]
                raise UnknownJob(name, names, otherwise="only a deleted data job can be restored")
            newest, *_ = versions
            if newest.dropped_at is None:
                if newest.no in tried:  # by an earlier try, whose answer got lost
                    return partial(MadeJob, newest.definition, True)
                raise Conflict(
                    f"there is a job {name!r} already",
                    hint=f"update it with the deleted one, as `rota audit --subject {name}` shows it",
                )
            check(newest.definition)
            job = await _insert(tx, newest.definition, versions, newest.owner)
            if job is None:  # race: another process has restored it, or created another
                raise Conflict(f"there is a job {name!r} already", hint="look at it: `rota job get`")
            tried.append(job.version)
            await _declare(tx, job, actor, "restored")
            return partial(MadeJob, job, True)

        return await self._with_facts(name, await self._database.transact(body))


def _shown(definition: JobDefinition) -> dict[str, Any]:
    """Return a job's definition for the audit log, without secrets and defaults."""
    defaults = msgspec.to_builtins(JobDefinition(name=""))
    facts = msgspec.to_builtins(masked(definition))
    return {name: value for name, value in facts.items() if value != defaults[name]}


async def _versions(tx: Tx, name: str) -> list[_Version]:
    return [_Version(*row) for row in await tx.fetch("job_versions", job=name)]


async def _locked_versions(tx: Tx, name: str, lock: str = "lock_job") -> list[_Version]:
    """Lock all versions of a job and return them, newest first.

    Race: the lock may have waited for a change that inserted a version, or found no row yet of a job that was created
    just then. What is read and not locked could be dropped, or used, by others meanwhile: so it is locked, too.
    """
    while True:
        locked = {version for (version,) in await tx.fetch(lock, job=name)}
        versions = await _versions(tx, name)
        if locked.issuperset(version.no for version in versions):
            return versions


async def _require_own(tx: Tx, name: str, versions: list[_Version]) -> list[_Version]:
    """Return the versions of a data job. Raise if it is unknown, dropped or declared in code."""
    live = [version for version in versions if version.dropped_at is None]
    if not live:
        raise UnknownJob(name, [job for (job,) in await tx.fetch("job_names")], otherwise=_LIST)
    if live[0].owner == CODE:
        raise Conflict(f"job {name!r} is declared in code", hint="change it there")
    return versions


async def _schedule(tx: Tx, name: str) -> Schedule:
    (row,) = await tx.fetch("get_schedule", name=name)
    return schedule_of(row)


async def _written(tx: Tx, name: str, make: Make, owner: str) -> tuple[JobDefinition, str | None]:
    """Insert what `make` returns, unless it is stored already. Return it, and what happened: None for nothing."""
    for _ in range(2):  # as in `_added`
        versions = await _locked_versions(tx, name)
        newest = next((version for version in versions if version.dropped_at is None), None)
        if newest is not None and newest.owner == CODE:
            raise Conflict(f"job {name!r} is declared in code", hint="change it there")
        definition = make(None if newest is None else newest.definition)
        if newest is not None and msgspec.structs.replace(definition, version=newest.no) == newest.definition:
            return newest.definition, None
        made = await _insert(tx, definition, versions, owner if newest is None else newest.owner)
        if made is not None:
            return made, "added" if newest is None else "changed"
    raise Conflict(f"another process changed job {name!r} just now", hint="look at it: `rota job get`")


async def _added(tx: Tx, definition: JobDefinition, owner: str) -> tuple[JobDefinition, bool]:
    """Insert the job's row, or return the equal one that exists, and whether it is new. The caller declares what
    follows from a new one."""
    for _ in range(2):  # a first version has no row to lock: the loser of a race finds the winner's the second time
        versions = await _locked_versions(tx, definition.name)
        live = [version for version in versions if version.dropped_at is None]
        if live and live[0].owner != CODE:
            newest = live[0].definition
            if msgspec.structs.replace(definition, version=newest.version) == newest:
                return newest, False
        if live:
            hint = "change it: `rota job update`" if live[0].owner != CODE else "it is declared in code"
            raise Conflict(f"job {definition.name!r} already exists", hint=hint)
        made = await _insert(tx, definition, versions, owner)
        if made is not None:
            return made, True
    raise Conflict(f"another process created job {definition.name!r} just now", hint="look at it: `rota job get`")


async def _scheduled(tx: Tx, id: str, schedule: NewSchedule, actor: str | None) -> None:
    """Create the job's own schedule, or keep the equal one that exists."""
    name, definition = schedule.name, schedule.definition
    owner = own_owner(definition.job)
    try:
        await change.create(tx, id, name, definition, owner, declared=None, actor=actor)
    except DuplicateSchedule:
        existing = await change.find(tx, name)
        if existing is None or existing.definition != definition:
            raise


async def _require_flat(tx: Tx, definition: JobDefinition) -> None:
    """Raise `Invalid` if a pipeline would have another as a part, or be one. The caller has the lock of its job, which
    comes before that of all pipelines."""
    if not definition.pipeline:
        return
    if tx.dialect is POSTGRES:  # race: of two that name each other neither would see the other; on SQLite one writes
        await tx.script(f"select pg_advisory_xact_lock({_PIPELINES})")
    names = [(name,) for name in sorted({part.job for part in definition.pipeline})]
    texts = [text for _, text in await tx.fetch("job_definitions", names)]
    texts += [text for (text,) in await tx.fetch("newest_of_kind", kind=JobKind.PIPELINE.value)]
    require_flat(definition, [msgspec.json.decode(text, type=JobDefinition) for text in texts])


async def _insert(tx: Tx, definition: JobDefinition, versions: list[_Version], owner: str) -> JobDefinition | None:
    """Insert the next version of a job.

    Return None if another transaction, whose commit this waited for, inserted it first.
    """
    await _require_flat(tx, definition)
    version = max((known.no for known in versions), default=0) + 1
    made = msgspec.structs.replace(definition, version=version)
    text = msgspec.json.encode(made, order="deterministic").decode()
    facts = {"job": made.name, "version": version, "kind": made.kind, "owner": owner}
    return made if await tx.fetch("add_data_job", **facts, definition=text) else None


async def _declare(tx: Tx, made: JobDefinition, actor: str | None, event: str) -> None:
    """Apply what follows from a new version, and wake the queues where runs may begin because of it."""
    await admit.declare(tx, made)
    await restrict.declare(tx, made)
    await expectations.declare_job(tx, made)
    await audit.note(tx, "job", made.name, event, actor, {"kind": made.kind, "version": made.version})
    tx.wake(None)  # idle workers learn of it: they no longer look by themselves
