"""Verbs about jobs and queues as a whole; part of `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Pause
from rota.core.jobs.secrets import masked
from rota.core.jobs.status import JobStatus, resume_mode, status_of
from rota.core.monitoring.statistics import JobStats
from rota.core.states import RunState
from rota.errors import UnknownJob
from rota.registry.jobs import Registry
from rota.values.actor import checked_actor
from rota.values.names import checked_name

if TYPE_CHECKING:
    from rota.engine.observability.meters import Meters
    from rota.store import Store


class JobVerbs:
    """Verbs about a job or a queue, by name."""

    store: Store
    registry: Registry
    meters: Meters

    async def job(self, name: str) -> JobDefinition:
        """Return a job's definition, with secrets masked."""
        if name in self.registry.newest:
            return masked(self.registry.newest[name].definition)
        stored = await self.store.job(name)
        if stored is None:
            raise UnknownJob(name, [definition.name for definition in await self.jobs()])
        return masked(stored)

    async def jobs(self) -> Sequence[JobDefinition]:
        """List the definitions of all jobs by name: those declared in this process and those stored by others. Secrets
        are masked."""
        stored = {definition.name: definition for definition in await self.store.jobs()}
        declared = {name: self.registry.newest[name].definition for name in self.registry.names()}
        return [masked(definition) for _, definition in sorted({**stored, **declared}.items())]

    async def job_status(self, name: str) -> JobStatus:
        """Return the current status of a job."""
        await self.job(name)
        (facts,) = await self.store.job_facts([name])
        return status_of(facts)

    async def job_statuses(self) -> Sequence[JobStatus]:
        """List the statuses of all jobs, in the order of `jobs`."""
        names = [definition.name for definition in await self.jobs()]
        return [status_of(facts) for facts in await self.store.job_facts(names)]

    async def job_stats(self, name: str) -> JobStats:
        """Return statistics over all runs of a job that have ended, including pruned ones."""
        await self.job(name)
        return await self.store.job_stats(name)

    async def pause_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> JobStatus:
        """Pause a job: no run of it starts and its schedules do not fire until it is resumed. Running runs continue."""
        await self.job(name)
        await self.store.pause_job(name, reason, checked_actor(actor))
        return await self.job_status(name)

    async def resume_job(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> JobStatus:
        """Resume a job. `catch_up` says which plan times of the pause still run: none (`skip`), the `latest`, or
        `all`."""
        await self.job(name)
        await self.store.resume_job(name, resume_mode(catch_up), checked_actor(actor))
        return await self.job_status(name)

    async def cancel_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> int:
        """Disable a job's schedules and cancel its live runs; return how many runs."""
        await self.job(name)
        done = await self.store.cancel_job(name, reason, checked_actor(actor))
        self.meters.cancels.add(done.total)
        self.meters.runs[RunState.CANCELLED].add(done.ended)
        return done.total

    async def queues(self) -> Sequence[tuple[str, int, int, int]]:
        """List (queue, running, queued, scheduled) for each queue. Cancelling runs count as running."""
        return await self.store.queue_counts()

    async def pause_queue(self, queue: str, *, reason: str | None = None, actor: str | None = None) -> None:
        """Pause a queue: nothing is claimed from it until it is resumed. Running runs continue."""
        await self.store.pause_queue(checked_name(queue, "queue"), reason, checked_actor(actor))

    async def resume_queue(self, queue: str, *, actor: str | None = None) -> bool:
        """Resume a queue; return whether it was paused."""
        return await self.store.resume_queue(checked_name(queue, "queue"), checked_actor(actor))

    async def paused_queues(self) -> Sequence[Pause]:
        """List the paused queues."""
        return await self.store.paused_queues()
