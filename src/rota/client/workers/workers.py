"""`client.workers`: list, drain, resume, stop and update workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.workers.worker import MOST_SLOTS, Queues, Worker, WorkerState, checked_settings, matching
from rota.values.actor import checked_actor
from rota.values.durations import Duration
from rota.verbs.examples import WORKER
from rota.verbs.pages import Page
from rota.verbs.verb import verb
from rota.verbs.wire import Wired

if TYPE_CHECKING:
    from rota.store import Store

Slots = Annotated[int, Meta(ge=1, le=MOST_SLOTS)]


class WorkersClient:
    """Workers, by id, the unique beginning of one, or name; a name stands for all workers of that name.

    Workers learn of requests at their next heartbeat. Requests last as long as the worker's process.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @verb("GET", "/workers/{id}", Role.VIEWER, gives=WORKER)
    async def get(self, id_or_name: str) -> Worker:
        """Return a worker; of several, the one with the latest heartbeat."""
        return max(await self._store.workers.list(id_or_name), key=lambda worker: worker.seen_at)

    async def find(self, id_or_name: str) -> Sequence[Worker]:
        """Return the worker of this id, or all of this name."""
        workers = await self.list()
        ids = matching(id_or_name, [(worker.id, worker.name) for worker in workers])
        return [worker for worker in workers if worker.id in ids]

    @verb("POST", "/workers/{id}/drain", Role.OPERATOR, gives=WORKER)
    async def drain(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Drain workers: they claim nothing more, finish their runs, and stay up for further requests."""
        return await self._store.workers.ask(id_or_name, checked_actor(actor), state=WorkerState.DRAINING)

    @verb("POST", "/workers/{id}/resume", Role.OPERATOR, gives=WORKER)
    async def resume(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Resume drained workers. A stop cannot be undone."""
        return await self._store.workers.ask(id_or_name, checked_actor(actor), state=WorkerState.WORKING)

    @verb("POST", "/workers/{id}/stop", Role.OPERATOR, gives=WORKER)
    async def stop(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        """Stop workers as SIGTERM does: their runs get the grace period; a `rota worker` then exits with code 0."""
        return await self._store.workers.ask(id_or_name, checked_actor(actor), state=WorkerState.STOPPING)

    @verb("PATCH", "/workers/{id}", Role.OPERATOR, takes={"slots": 50}, gives=WORKER)
    async def update(
        self,
        id_or_name: str,
        *,
        slots: Annotated[Slots | None, Meta(description="Runs at a time")] = None,
        queues: Annotated[
            Queues | None,
            Wired(dict[str, int] | list[str] | None),
            Meta(description="Names of queues, or names with weights"),
        ] = None,
        heartbeat: Annotated[Duration | None, Meta(description="Time between heartbeats")] = None,
        poll: Annotated[Duration | None, Meta(description="Longest time between two looks for work")] = None,
        actor: str | None = None,
    ) -> Sequence[Worker]:
        """Change the given settings of running workers. `heartbeat` applies from the next heartbeat, the others from
        the next claim; running runs are not affected."""
        settings = checked_settings(slots=slots, queues=queues, heartbeat=heartbeat, poll=poll)
        return await self._store.workers.ask(id_or_name, checked_actor(actor), settings=settings)

    @verb("GET", "/workers", Role.VIEWER, page=Page(lambda worker: (worker.name, worker.id)), gives=WORKER)
    async def list(self) -> Sequence[Worker]:
        """List workers with a heartbeat within the last day, by name."""
        return await self._store.workers.list()
