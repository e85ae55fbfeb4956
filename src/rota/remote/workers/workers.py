"""`client.workers` over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rota.core.workers.worker import Queues, Worker, checked_settings, matching
from rota.remote.decode import items, read, value
from rota.remote.encode import duration
from rota.remote.transport import Transport, path_of
from rota.values.durations import Duration


class RemoteWorkers:
    """Workers, by id, the unique beginning of one, or name; a name stands for all workers of that name.

    Workers learn of requests at their next heartbeat. Requests last as long as the worker's process.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, id_or_name: str) -> Worker:
        """Return a worker; of several, the one with the latest heartbeat."""
        return value(
            read((await self._transport.ask("GET", path_of("workers", id_or_name))).body, dict[str, Any]), Worker
        )

    async def find(self, id_or_name: str) -> Sequence[Worker]:
        """Return the worker of this id, or all of this name."""
        workers = await self.list()
        ids = matching(id_or_name, [(worker.id, worker.name) for worker in workers])
        return [worker for worker in workers if worker.id in ids]

    async def drain(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Drain workers: they claim nothing more, finish their runs, and stay up for further requests."""
        return await self._post(id_or_name, "drain")

    async def resume(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Resume drained workers. A stop cannot be undone."""
        return await self._post(id_or_name, "resume")

    async def stop(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Stop workers as SIGTERM does: their runs get the grace period; a `rota worker` then exits with code 0."""
        return await self._post(id_or_name, "stop")

    async def _post(self, id_or_name: str, verb: str) -> Sequence[Worker]:
        return items((await self._transport.ask("POST", path_of("workers", id_or_name, verb))).body, Worker)

    async def update(
        self,
        id_or_name: str,
        *,
        slots: int | None = None,
        queues: Queues | None = None,
        heartbeat: Duration | None = None,
        poll: Duration | None = None,
        actor: str | None = None,
    ) -> Sequence[Worker]:
        """Change the given settings of running workers. `heartbeat` applies from the next heartbeat, the others from
        the next claim; running runs are not affected."""
        settings = checked_settings(slots=slots, queues=queues, heartbeat=heartbeat, poll=poll)
        body = {
            "slots": settings.slots,
            "queues": settings.queues,
            "heartbeat": None if settings.heartbeat is None else duration(settings.heartbeat),
            "poll": None if settings.poll is None else duration(settings.poll),
        }
        return items((await self._transport.ask("PATCH", path_of("workers", id_or_name), body=body)).body, Worker)

    async def list(self) -> Sequence[Worker]:
        """List workers with a heartbeat within the last day, by name."""
        return items((await self._transport.ask("GET", path_of("workers"))).body, Worker)
