"""Verbs about which workers may execute a run; part of `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rota.core.runs.run import Run
from rota.core.workers.replicas import Replica
from rota.core.workers.requirements import restricted_to
from rota.values.actor import checked_actor
from rota.values.scope import Scope

if TYPE_CHECKING:
    from rota.store import Store


class AssignmentVerbs:
    """Verbs about which workers may run a run."""

    store: Store
    scope: Scope | None

    async def _find(self, run_id: str) -> str:
        """Return the whole id for a shortened one, within the client's scope. Every verb that takes a run id calls
        this."""
        return await self.store.find_run(run_id, self.scope)

    async def restrict(self, run_id: str, only_workers: Sequence[str] | None, *, actor: str | None = None) -> Run:
        """Let only workers with these names execute the run; None lifts the restriction. If another worker is executing
        it, it loses the run."""
        whole_id = await self._find(run_id)
        await self.store.restrict(whole_id, restricted_to(only_workers), checked_actor(actor))
        return await self.store.get_run(whole_id)

    async def replicas(self, run_id: str) -> Sequence[Replica]:
        """List the replicas of a run that several workers execute. Each is a run of its own, with its worker and
        state."""
        return await self.store.conducts.replicas(await self._find(run_id))
