"""`client.workers`: list, drain, resume, stop and update workers."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.workers.worker import Queues, Worker, WorkerState, checked_settings
from rota.store import Store
from rota.values.actor import checked_actor
from rota.values.durations import Duration


class WorkersClient:
    """Workers, by id, the unique beginning of one, or name; a name stands for all workers of that name.

    Workers learn of requests at their next heartbeat. Requests last as long as the worker's process.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, id_or_name: str) -> Worker:
        """Return a worker; of several, the one with the latest heartbeat."""
        return max(await self._store.workers.list(id_or_name), key=lambda worker: worker.seen_at)

    async def find(self, id_or_name: str) -> Sequence[Worker]:
        """Return the worker of this id, or all of this name."""
        return await self._store.workers.list(id_or_name)

    async def drain(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Drain workers: they claim nothing more, finish their runs, and stay up for further requests."""
        return await self._store.workers.ask(id_or_name, checked_actor(actor), state=WorkerState.DRAINING)

    async def resume(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Resume drained workers. A stop cannot be undone."""
        return await self._store.workers.ask(id_or_name, checked_actor(actor), state=WorkerState.WORKING)

    async def stop(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Stop workers as SIGTERM does: their runs get the grace period; a `rota worker` then exits with code 0."""
        return await self._store.workers.ask(id_or_name, checked_actor(actor), state=WorkerState.STOPPING)

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
        return await self._store.workers.ask(id_or_name, checked_actor(actor), settings=settings)

    async def list(self) -> Sequence[Worker]:
        """List workers with a heartbeat within the last day, by name."""
        return await self._store.workers.list()
