"""What is asked of jobs and queues as a whole: a part of the client."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Pause
from rota.core.jobs.secrets import masked
from rota.core.jobs.status import JobStatus, resume_mode, status_of
from rota.core.monitoring.statistics import JobStats
from rota.core.states import RunState
from rota.engine.observability.meters import Meters
from rota.errors import UnknownJob
from rota.registry.jobs import Registry
from rota.store import Store
from rota.values.actor import checked_actor
from rota.values.names import checked_name


class JobVerbs:
    """Of a job by its name, of a queue by its own."""

    store: Store
    registry: Registry
    meters: Meters

    async def job(self, name: str) -> JobDefinition:
        """Secrets in it are masked."""
        if name in self.registry:
            return masked(self.registry.newest(name).definition)
        stored = await self.store.job(name)
        if stored is None:
            raise UnknownJob(name, [definition.name for definition in await self.jobs()])
        return masked(stored)

    async def jobs(self) -> Sequence[JobDefinition]:
        """As declared in this process, and as stored by others."""
        stored = {definition.name: definition for definition in await self.store.jobs()}
        own = {name: self.registry.newest(name).definition for name in self.registry.names()}
        return [masked(definition) for _, definition in sorted({**stored, **own}.items())]

    async def job_status(self, name: str) -> JobStatus:
        """What a job is at, taken as a whole."""
        await self.job(name)
        (facts,) = await self.store.job_facts([name])
        return status_of(facts)

    async def job_statuses(self) -> Sequence[JobStatus]:
        """Of all jobs, in the order of `jobs`."""
        names = [definition.name for definition in await self.jobs()]
        return [status_of(facts) for facts in await self.store.job_facts(names)]

    async def job_stats(self, name: str) -> JobStats:
        """Of all its runs that ever ended, pruned ones included."""
        await self.job(name)
        return await self.store.job_stats(name)

    async def pause_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> JobStatus:
        """Nothing of it begins, and its schedules rest, until it is resumed; what runs, runs on."""
        await self.job(name)
        await self.store.pause_job(name, reason, checked_actor(actor))
        return await self.job_status(name)

    async def resume_job(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> JobStatus:
        """`catch_up`: which plan times of the pause are made up for: none of them (`skip`), the `latest`, or `all`."""
        await self.job(name)
        await self.store.resume_job(name, resume_mode(catch_up), checked_actor(actor))
        return await self.job_status(name)

    async def cancel_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> int:
        """Its schedules are disabled; its live runs end, or are asked to stop. How many that were."""
        await self.job(name)
        done = await self.store.cancel_job(name, reason, checked_actor(actor))
        self.meters.cancels.add(done.total)
        self.meters.runs[RunState.CANCELLED].add(done.ended)
        return done.total

    async def queues(self) -> Sequence[tuple[str, int, int, int]]:
        """(queue, running, queued, scheduled); those that are being cancelled are running still."""
        return await self.store.queue_counts()

    async def pause_queue(self, queue: str, *, reason: str | None = None, actor: str | None = None) -> None:
        """Nothing of it is claimed until it is resumed; what runs, runs on."""
        await self.store.pause_queue(checked_name(queue, "queue"), reason, checked_actor(actor))

    async def resume_queue(self, queue: str, *, actor: str | None = None) -> bool:
        """Whether it was paused."""
        return await self.store.resume_queue(checked_name(queue, "queue"), checked_actor(actor))

    async def paused_queues(self) -> Sequence[Pause]:
        """The queues that somebody paused."""
        return await self.store.paused_queues()
