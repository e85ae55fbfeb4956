"""`client.workers` of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rota.core.workers.worker import Queues, Worker, checked_settings, matching
from rota.remote.decode import items, read, value
from rota.remote.encode import duration
from rota.remote.transport import Transport, path_of
from rota.values.durations import Duration


class RemoteWorkers:
    """`who` is a worker's id, the unique beginning of one, or a name: then all workers of that name are meant."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, who: str) -> Worker:
        """The one that was heard of last, if several are meant."""
        return value(read((await self._transport.ask("GET", path_of("workers", who))).body, dict[str, Any]), Worker)

    async def find(self, who: str) -> Sequence[Worker]:
        known = await self.list()
        ids = matching(who, [(worker.id, worker.name) for worker in known])
        return [worker for worker in known if worker.id in ids]

    async def drain(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        """It claims nothing more, ends what runs, and waits for what else is asked of it."""
        return await self._asked(who, "drain")

    async def resume(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        """After a drain; a stop cannot be taken back."""
        return await self._asked(who, "resume")

    async def stop(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        """As SIGTERM does: it ends what runs, within its grace; a `rota worker` then exits with code 0."""
        return await self._asked(who, "stop")

    async def _asked(self, who: str, verb: str) -> Sequence[Worker]:
        return items((await self._transport.ask("POST", path_of("workers", who, verb))).body, Worker)

    async def update(
        self,
        who: str,
        *,
        slots: int | None = None,
        queues: Queues | None = None,
        heartbeat: Duration | None = None,
        poll: Duration | None = None,
        actor: str | None = None,
    ) -> Sequence[Worker]:
        """Only what is given changes: `heartbeat` from the next heartbeat on, the rest from the next claim on."""
        wanted = checked_settings(slots=slots, queues=queues, heartbeat=heartbeat, poll=poll)
        body = {
            "slots": wanted.slots,
            "queues": wanted.queues,
            "heartbeat": None if wanted.heartbeat is None else duration(wanted.heartbeat),
            "poll": None if wanted.poll is None else duration(wanted.poll),
        }
        return items((await self._transport.ask("PATCH", path_of("workers", who), body=body)).body, Worker)

    async def list(self) -> Sequence[Worker]:
        """All that were heard of within a day, by name."""
        return items((await self._transport.ask("GET", path_of("workers"))).body, Worker)
