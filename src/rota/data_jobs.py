"""Every command about jobs that are data: `client.data_jobs`."""

from __future__ import annotations

from typing import Any

from rota.core.actors import checked_actor
from rota.core.masking import masked
from rota.core.model import JobDefinition
from rota.core.names import checked_name
from rota.errors import ChangedMeanwhile, Conflict, Unavailable
from rota.registry.data_jobs import changed_options, checked_data_job
from rota.registry.jobs import Registry
from rota.store import Store

_TRIES = 5


class DataJobs:
    """Workers hear of it with their next poll. What is answered has its secrets masked."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    async def add(
        self, name: str, kind: str, *, owner: str = "api", actor: str | None = None, **options: Any
    ) -> JobDefinition:
        """`kind` is `http`, `command` or `external`; `options` are those of `app.http_job` and `app.command_job`."""
        definition = checked_data_job(name, kind, options)
        if name in self._registry:
            raise Conflict(f"job {name!r} is declared in code", hint="take another name")
        checked_name(owner, "owner")
        return masked(await self._store.data_jobs.add(definition, owner, checked_actor(actor)))

    async def change(
        self, name: str, *, expected: int | None = None, actor: str | None = None, **options: Any
    ) -> JobDefinition:
        """A new version: only what is given changes, and what is None goes back to its default. Runs that were
        enqueued before keep theirs. `expected`: it must still be of this version, or it is a `ChangedMeanwhile`."""
        for _ in range(_TRIES):  # two people may change different things at once, and both changes count
            old = await self._store.data_jobs.get(name)
            if expected is not None and old.version != expected:
                raise ChangedMeanwhile(f"job {name!r}")
            definition = checked_data_job(name, old.kind, changed_options(old, options), version=old.version)
            if changed := await self._store.data_jobs.change(definition, checked_actor(actor)):
                return masked(changed)
        raise Unavailable(f"job {name!r} kept changing while it was being edited", hint="try again")

    async def drop(self, name: str, *, force: bool = False, actor: str | None = None) -> None:
        """No more runs of it. While a schedule or a run needs it, it is refused; with `force`, those schedules are
        disabled and those runs cancelled."""
        checked_actor(actor)
        if force:
            await self._store.data_jobs.get(name)
            await self._store.cancel_job(name, "the job is dropped", actor)
        await self._store.data_jobs.drop(name, actor, force=force)
