"""`client.expectations`: what is expected of jobs and schedules, and which expectations are breached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.alerts.expectations import DECLARED, OPTIONS, ExpectationOptions, Expected, checked_kind
from rota.errors import Invalid, NotExpected
from rota.values.actor import checked_actor
from rota.verbs.examples import EXPECTED
from rota.verbs.pages import Page
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.registry.jobs import Registry
    from rota.store import Store

_PATH = "/expectations/{kind}/{name}"


class ExpectationsClient:
    """Expectations of jobs and schedules: `kind` is "job" or "schedule", and `name` the name of one.

    All expectations are checked every `ROTA_EXPECT`.
    """

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    @verb("PATCH", _PATH, Role.ADMIN, repeatable=True, takes={"start_within": None}, gives=EXPECTED)
    async def update(
        self, kind: str, name: str, *, actor: str | None = None, **expect: Unpack[ExpectationOptions]
    ) -> Expected:
        """Change the given expectations of a job or schedule; None removes one. All its expectations now belong to the
        caller: declarations in code no longer change them."""
        return await self._update(kind, name, actor, expect)

    @verb("PUT", _PATH, Role.ADMIN, repeatable=True, takes={"success_every": "25h"}, gives=EXPECTED)
    async def replace(
        self, kind: str, name: str, *, actor: str | None = None, **expect: Unpack[ExpectationOptions]
    ) -> Expected:
        """Replace the expectations of a job or schedule, like `update`. Expectations that are not given are removed."""
        return await self._update(kind, name, actor, {**dict.fromkeys(OPTIONS), **expect})

    async def _update(self, kind: str, name: str, actor: str | None, expect: Mapping[str, Any]) -> Expected:
        owner = checked_actor(actor) or "api"
        if owner == DECLARED:
            raise Invalid(f"actor must not be {DECLARED!r}", hint="that name is reserved for declarations in code")
        return await self._store.expectations.update(checked_kind(kind), name, expect, owner, self._registry.newest)

    @verb("GET", _PATH, Role.VIEWER, gives=EXPECTED)
    async def get(self, kind: str, name: str) -> Expected:
        """Return the expectations of a job or schedule; raise `NotExpected` if there are none."""
        for expected in await self._store.expectations.list(checked_kind(kind), name):
            return expected
        raise NotExpected(kind, name)

    async def find(self, kind: str, name: str) -> Expected | None:
        """Return the expectations of a job or schedule, or None if there are none."""
        try:
            return await self.get(kind, name)
        except NotExpected:
            return None

    @verb("DELETE", _PATH, Role.ADMIN)
    async def delete(self, kind: str, name: str, *, actor: str | None = None) -> None:
        """Delete the expectations of a job or schedule, which ends their breaches; raise `NotExpected` if there are
        none. Expectations declared in code return when their declaration changes."""
        declared = self._registry.newest
        if not await self._store.expectations.delete(checked_kind(kind), name, checked_actor(actor), declared):
            raise NotExpected(kind, name)

    @verb("GET", "/expectations", Role.VIEWER, page=Page(lambda it: (it.kind, it.subject)), gives=EXPECTED)
    async def list(
        self, *, breached: Annotated[bool, Meta(description="Only those that are not met")] = False
    ) -> Sequence[Expected]:
        """List the expectations of all jobs and schedules, with their breaches."""
        expectations = await self._store.expectations.list()
        return [expected for expected in expectations if expected.breaches] if breached else expectations
