"""`client.data_jobs`: create, update and delete data jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rota.client.schedules.definition import DefinitionVerbs
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.secrets import masked
from rota.core.runs.options import Order
from rota.core.runs.run import MadeJob, NewRun
from rota.core.schedules.documents import Parsed
from rota.core.schedules.schedule import NewSchedule
from rota.errors import ChangedMeanwhile, Conflict, Unavailable
from rota.registry.data_jobs import changed_options, checked_data_job
from rota.registry.jobs import Registry
from rota.registry.scope_providers import require_answer
from rota.values.actor import checked_actor
from rota.values.names import checked_name

if TYPE_CHECKING:
    from rota.engine.observability.meters import Meters
    from rota.store import Store

_TRIES = 5
_DELETED = "the job was deleted"

RunOf = Callable[[JobDefinition, Order, str], NewRun]
"""Builds a run of a stored job, under the given id."""


class DataJobsClient:
    """Jobs defined as data instead of code. Workers learn of changes at their next poll. Returned definitions have
    their secrets masked."""

    def __init__(
        self, store: Store, registry: Registry, schedules: DefinitionVerbs, run_of: RunOf, meters: Meters
    ) -> None:
        self._store = store
        self._registry = registry
        self._schedules = schedules
        self._run_of = run_of
        self._meters = meters

    async def create(
        self, name: str, kind: str, *, owner: str = "api", actor: str | None = None, **options: Any
    ) -> JobDefinition:
        """Create a job of `kind` `http`, `command` or `external`. `options` are those of `app.http_job` and
        `app.command_job`."""
        return (await self.create_with(name, kind, options, owner=owner, actor=actor)).job

    async def create_with(
        self,
        name: str,
        kind: str,
        options: dict[str, Any],
        *,
        schedule: Parsed | None = None,
        run: Mapping[str, Any] | None = None,
        owner: str = "api",
        actor: str | None = None,
    ) -> MadeJob:
        """Create a job together with its own schedule, and enqueue a run with the payload `run`; all or nothing.

        The schedule is deleted with the job. An identical call changes nothing: there is one such run per version of
        the job.
        """
        definition = checked_data_job(name, kind, options)
        if name in self._registry.newest:
            raise Conflict(f"job {name!r} is declared in code", hint="choose another name")
        checked_name(owner, "owner")
        new_schedule = None if schedule is None else await self._new_schedule(schedule, definition)
        build_run = None if run is None else partial(self._first_run, dict(run), self._store.new_id())
        created = await self._store.data_jobs.create_with(
            definition, owner, checked_actor(actor), schedule=new_schedule, run=build_run
        )
        if created.run is not None:
            self._meters.enqueued.add(created.run.created)
        return replace(created, job=masked(created.job))

    async def _new_schedule(self, schedule: Parsed, job: JobDefinition) -> NewSchedule:
        definition = await self._schedules.define(*schedule, new_job=job)
        if definition.provider is not None:
            await require_answer(schedule.name, definition.provider, self._registry.schedules.providers)
        return NewSchedule(schedule.name, definition)

    def _first_run(self, payload: dict[str, Any], id: str, job: JobDefinition) -> NewRun:
        """Build the run that comes with the job, idempotent per version. ␟ cannot come from a header, so no caller's
        key collides."""
        options = {"idempotency_key": f"␟job␟{job.name}␟{job.version}"}
        return self._run_of(job, Order(job.name, payload, options), id)

    async def update(
        self, name: str, *, expected: int | None = None, actor: str | None = None, **options: Any
    ) -> JobDefinition:
        """Store a new version of a job with the given options changed; None resets an option to its default. Runs that
        are already enqueued keep their version. With `expected`, raise `ChangedMeanwhile` unless the job still has that
        version."""
        # Optimistic locking: two people may change different options at the same time, and both changes count.
        for _ in range(_TRIES):
            old = await self._store.data_jobs.get(name)
            if expected is not None and old.version != expected:
                raise ChangedMeanwhile(f"job {name!r}")
            definition = checked_data_job(name, old.kind, changed_options(old, options), version=old.version)
            if changed := await self._store.data_jobs.update(definition, checked_actor(actor)):
                return masked(changed)
        raise Unavailable(f"job {name!r} kept changing while it was being edited", hint="try again")

    async def delete(self, name: str, *, force: bool = False, actor: str | None = None) -> None:
        """Delete a job and its own schedule. Raise `JobInUse` while another schedule or a live run uses it; with
        `force`, disable those schedules and cancel those runs."""
        checked_actor(actor)
        if force:
            await self._store.data_jobs.get(name)
            await self._store.cancel_job(name, _DELETED, actor)
        # Race: runs may be enqueued between the cancel above and this delete. The delete returns them, and none can
        # follow, because the job is gone.
        late_runs = await self._store.data_jobs.delete(name, actor, force=force)
        if late_runs:
            await self._store.cancel_left(name, late_runs, _DELETED, actor)
