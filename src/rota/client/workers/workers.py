"""Every question and command about workers: `client.workers`."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.workers.worker import Queues, Worker, WorkerState, checked_settings
from rota.store import Store
from rota.values.actor import checked_actor
from rota.values.durations import Duration


class WorkersClient:
    """`who` is a worker's id, the unique beginning of one, or a name: then all workers of that name are meant.

    They hear of what is asked with their next heartbeat, and it holds as long as their process lives.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, who: str) -> Worker:
        """The one that was heard of last, if several are meant."""
        return max(await self._store.workers.list(who), key=lambda worker: worker.seen_at)

    async def find(self, who: str) -> Sequence[Worker]:
        """The worker of this id, or all of this name."""
        return await self._store.workers.list(who)

    async def drain(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        """It claims nothing more, ends what runs, and waits for what else is asked of it."""
        return await self._store.workers.ask(who, checked_actor(actor), state=WorkerState.DRAINING)

    async def resume(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        """After a drain; a stop cannot be taken back."""
        return await self._store.workers.ask(who, checked_actor(actor), state=WorkerState.WORKING)

    async def stop(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        """As SIGTERM does: it ends what runs, within its grace; a `rota worker` then exits with code 0."""
        return await self._store.workers.ask(who, checked_actor(actor), state=WorkerState.STOPPING)

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
        """Only what is given changes: `heartbeat` from the next heartbeat on, the rest from the next claim on. What
        runs is not affected."""
        settings = checked_settings(slots=slots, queues=queues, heartbeat=heartbeat, poll=poll)
        return await self._store.workers.ask(who, checked_actor(actor), settings=settings)

    async def list(self) -> Sequence[Worker]:
        """All that were heard of within a day, by name."""
        return await self._store.workers.list()
