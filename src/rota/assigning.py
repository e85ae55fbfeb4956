"""Verbs of the client about who does a run."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.actors import checked_actor
from rota.core.model import Run
from rota.core.needs import restricted_to
from rota.core.replicas import Replica
from rota.core.scope import Scope
from rota.store import Store


class Assigning:
    store: Store
    scope: Scope | None

    async def _find(self, run_id: str) -> str:
        """The whole id, by a part of it: every verb that is given one finds it here, within the client's scope."""
        return await self.store.find_run(run_id, self.scope)

    async def restrict(self, run_id: str, only_workers: Sequence[str] | None, *, actor: str | None = None) -> Run:
        """Only workers of these names may have it; None: of any name. From others that have it, it is taken away."""
        found = await self._find(run_id)
        await self.store.restrict(found, restricted_to(only_workers), checked_actor(actor))
        return await self.store.get_run(found)

    async def replicas(self, run_id: str) -> Sequence[Replica]:
        """Those of a run that several workers do, each a run of its own: whose it is, and how far."""
        return await self.store.conducts.replicas(await self._find(run_id))
