"""Verbs about jobs and queues as a whole, over HTTP; part of `RemoteClient`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Pause
from rota.core.jobs.status import JobStatus, resume_mode
from rota.core.monitoring.statistics import JobStats
from rota.core.runs.run import Enqueued, Run
from rota.remote.decode import enqueued_of, items, job_of, read, value
from rota.remote.transport import Transport, once, path_of
from rota.values.names import checked_name


class _Cancelled(msgspec.Struct):
    cancelled: int


class _Resumed(msgspec.Struct):
    was_paused: bool


class _Queue(msgspec.Struct):
    queue: str
    running: int
    queued: int
    scheduled: int
    paused: Pause | None


class RemoteJobs:
    """Verbs about a job or a queue, by name."""

    _transport: Transport

    async def job(self, name: str) -> JobDefinition:
        """Return a job's definition, with secrets masked."""
        return job_of(await self._job(name))

    async def _job(self, name: str) -> dict[str, Any]:
        return read((await self._transport.ask("GET", path_of("jobs", name))).body, dict[str, Any])

    async def jobs(self) -> Sequence[JobDefinition]:
        """List the definitions of all jobs by name: those declared in the server's process and those stored by others.
        Secrets are masked."""
        return [job_of(item) for item in await self._jobs()]

    async def _jobs(self) -> list[dict[str, Any]]:
        return items((await self._transport.ask("GET", path_of("jobs"))).body, dict[str, Any])

    async def job_status(self, name: str) -> JobStatus:
        """Return the current status of a job."""
        return value((await self._job(name)).get("status"), JobStatus)

    async def job_statuses(self) -> Sequence[JobStatus]:
        """List the statuses of all jobs, in the order of `jobs`."""
        return [value(item.get("status"), JobStatus) for item in await self._jobs()]

    async def job_stats(self, name: str) -> JobStats:
        """Return statistics over all runs of a job that have ended, including pruned ones."""
        return read((await self._transport.ask("GET", path_of("jobs", name, "stats"))).body, JobStats)

    async def pause_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> JobStatus:
        """Pause a job: no run of it starts and its schedules do not fire until it is resumed. Running runs continue."""
        return read(await self._post_to("jobs", name, "pause", {"reason": reason}), JobStatus)

    async def resume_job(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> JobStatus:
        """Resume a job. `catch_up` says which plan times of the pause still run: none (`skip`), the `latest`, or
        `all`."""
        return read(await self._post_to("jobs", name, "resume", {"catch_up": resume_mode(catch_up)}), JobStatus)

    async def cancel_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> int:
        """Disable a job's schedules and cancel its live runs; return how many runs."""
        return read(await self._post_to("jobs", name, "cancel", {"reason": reason}), _Cancelled).cancelled

    async def retry_job(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> Enqueued:
        """Retry the newest run of a job if it failed, timed out, expired or was cancelled.

        With an `idempotency_key` the call is safe to repeat: it returns the run created the first time.
        """
        path, keyed = path_of("jobs", name, "retry"), once(idempotency_key)
        answer = await self._transport.ask("POST", path, headers=keyed)
        return enqueued_of(read(answer.body, Run), created=answer.status == 201)

    async def _post_to(self, kind: str, name: str, verb: str, body: object = None) -> bytes:
        return (await self._transport.ask("POST", path_of(kind, name, verb), body=body)).body

    async def queues(self) -> Sequence[tuple[str, int, int, int]]:
        """List (queue, running, queued, scheduled) for each queue. Cancelling runs count as running."""
        counts = [(queue.queue, queue.running, queue.queued, queue.scheduled) for queue in await self._queues()]
        return [count for count in counts if any(count[1:])]

    async def _queues(self) -> list[_Queue]:
        return items((await self._transport.ask("GET", path_of("queues"))).body, _Queue)

    async def pause_queue(self, queue: str, *, reason: str | None = None, actor: str | None = None) -> None:
        """Pause a queue: nothing is claimed from it until it is resumed. Running runs continue."""
        await self._post_to("queues", checked_name(queue, "queue"), "pause", {"reason": reason})

    async def resume_queue(self, queue: str, *, actor: str | None = None) -> bool:
        """Resume a queue; return whether it was paused."""
        return read(await self._post_to("queues", checked_name(queue, "queue"), "resume"), _Resumed).was_paused

    async def paused_queues(self) -> Sequence[Pause]:
        """List the paused queues."""
        return [queue.paused for queue in await self._queues() if queue.paused is not None]
