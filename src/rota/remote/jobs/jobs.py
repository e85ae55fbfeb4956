"""What is asked of jobs and queues as a whole, of a server: a part of its client."""

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
    """Of a job by its name, of a queue by its own."""

    _transport: Transport

    async def job(self, name: str) -> JobDefinition:
        """Secrets in it are masked."""
        return job_of(await self._job(name))

    async def _job(self, name: str) -> dict[str, Any]:
        return read((await self._transport.ask("GET", path_of("jobs", name))).body, dict[str, Any])

    async def jobs(self) -> Sequence[JobDefinition]:
        """As declared in the server's process, and as stored by others."""
        return [job_of(one) for one in await self._jobs()]

    async def _jobs(self) -> list[dict[str, Any]]:
        return items((await self._transport.ask("GET", path_of("jobs"))).body, dict[str, Any])

    async def job_status(self, name: str) -> JobStatus:
        return value((await self._job(name)).get("status"), JobStatus)

    async def job_statuses(self) -> Sequence[JobStatus]:
        """Of all jobs, in the order of `jobs`."""
        return [value(one.get("status"), JobStatus) for one in await self._jobs()]

    async def job_stats(self, name: str) -> JobStats:
        """Of all its runs that ever ended, pruned ones included."""
        return read((await self._transport.ask("GET", path_of("jobs", name, "stats"))).body, JobStats)

    async def pause_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> JobStatus:
        """Nothing of it begins, and its schedules rest, until it is resumed; what runs, runs on."""
        return read(await self._told("jobs", name, "pause", {"reason": reason}), JobStatus)

    async def resume_job(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> JobStatus:
        """`catch_up`: which plan times of the pause are made up for: none of them (`skip`), the `latest`, or `all`."""
        return read(await self._told("jobs", name, "resume", {"catch_up": resume_mode(catch_up)}), JobStatus)

    async def cancel_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> int:
        """Its schedules are disabled; its live runs end, or are asked to stop. How many that were."""
        return read(await self._told("jobs", name, "cancel", {"reason": reason}), _Cancelled).cancelled

    async def retry_job(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> Enqueued:
        """Its newest run once more, if that failed, timed out, expired or was cancelled.

        With an `idempotency_key` it may be asked again: the answer is the run that was made the first time.
        """
        path, keyed = path_of("jobs", name, "retry"), once(idempotency_key)
        answer = await self._transport.ask("POST", path, headers=keyed)
        return enqueued_of(read(answer.body, Run), created=answer.status == 201)

    async def _told(self, what: str, name: str, verb: str, body: object = None) -> bytes:
        return (await self._transport.ask("POST", path_of(what, name, verb), body=body)).body

    async def queues(self) -> Sequence[tuple[str, int, int, int]]:
        """(queue, running, queued, scheduled); those that are being cancelled are running still."""
        counts = [(one.queue, one.running, one.queued, one.scheduled) for one in await self._queues()]
        return [count for count in counts if any(count[1:])]

    async def _queues(self) -> list[_Queue]:
        return items((await self._transport.ask("GET", path_of("queues"))).body, _Queue)

    async def pause_queue(self, queue: str, *, reason: str | None = None, actor: str | None = None) -> None:
        """Nothing of it is claimed until it is resumed; what runs, runs on."""
        await self._told("queues", checked_name(queue, "queue"), "pause", {"reason": reason})

    async def resume_queue(self, queue: str, *, actor: str | None = None) -> bool:
        """Whether it was paused."""
        return read(await self._told("queues", checked_name(queue, "queue"), "resume"), _Resumed).was_paused

    async def paused_queues(self) -> Sequence[Pause]:
        return [one.paused for one in await self._queues() if one.paused is not None]
