"""Verbs about runs that are linked with a run: dependencies, retries and replicas; part of `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.ledger.family import MOST_MEMBERS, Family
from rota.core.runs.dependencies import RelatedRun
from rota.values.scope import Scope
from rota.verbs.examples import FAMILY, RELATED
from rota.verbs.pages import Page
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.store import Store

_about_run = partial(verb, "GET", role=Role.VIEWER, scoped=True, about_run=True)


class RelationVerbs:
    """Verbs about linked runs."""

    store: Store
    scope: Scope | None

    @_about_run("/runs/{id}/parents", page=Page(), gives=RELATED, operation="list_parents")
    async def parents(self, run_id: str) -> Sequence[RelatedRun]:
        """List the runs that a run depends on, in the order given."""
        return await self.store.dependencies.parents(run_id, self.scope)

    # By id: a child may be pruned between two pages.
    @_about_run("/runs/{id}/children", page=Page(lambda child: child.id), gives=RELATED, operation="list_children")
    async def children(self, run_id: str) -> Sequence[RelatedRun]:
        """List the runs that depend on a run, oldest first."""
        return await self.store.dependencies.children(run_id, self.scope)

    @verb("GET", "/runs/{id}/family", Role.VIEWER, scoped=True, gives=FAMILY, operation="get_family")
    async def family(
        self,
        run_id: str,
        *,
        limit: Annotated[int, Meta(ge=1, le=MOST_MEMBERS, description="Maximum number of runs")] = 200,
    ) -> Family:
        """Return the runs that are linked with a run, directly or through others, and the links between them.

        Links are dependencies, retries, and replicas of a run that several workers execute. The runs nearest to it come
        first. If there are more than `limit`, the answer is `truncated`, and `more` marks the runs whose links are cut.
        """
        return await self.store.families.of(run_id, limit, self.scope)
