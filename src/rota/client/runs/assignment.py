"""Verbs about which workers may execute a run; part of `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.runs.run import Run
from rota.core.workers.replicas import Replica
from rota.core.workers.requirements import restricted_to
from rota.values.actor import checked_actor
from rota.values.scope import Scope
from rota.verbs.examples import REPLICA, RUN
from rota.verbs.pages import Page
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.store import Store

Names = Annotated[Sequence[str], Meta(max_length=500)]


class AssignmentVerbs:
    """Verbs about which workers may run a run."""

    store: Store
    scope: Scope | None

    @verb(
        "POST",
        "/runs/{id}/restrict",
        Role.OPERATOR,
        scoped=True,
        takes={"only_workers": ["gpu-1"]},
        gives=RUN,
        operation="restrict_run",
    )
    async def restrict(
        self,
        run_id: str,
        only_workers: Annotated[Names | None, Meta(description="Names of workers; null lifts the restriction")],
        *,
        actor: str | None = None,
    ) -> Run:
        """Let only workers with these names execute the run; None lifts the restriction. If another worker is executing
        it, it loses the run."""
        return await self.store.restrict(run_id, restricted_to(only_workers), checked_actor(actor), self.scope)

    @verb(
        "GET",
        "/runs/{id}/replicas",
        Role.VIEWER,
        scoped=True,
        about_run=True,
        page=Page(lambda replica: replica.run_id),
        gives=REPLICA,
        operation="list_replicas",
    )
    async def replicas(self, run_id: str) -> Sequence[Replica]:
        """List the replicas of a run that several workers execute. Each is a run of its own, with its worker and
        state."""
        return await self.store.conducts.replicas(run_id, self.scope)
