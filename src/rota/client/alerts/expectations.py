"""`client.expectations`: what is expected of jobs and schedules, and which expectations are breached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from rota.core.alerts.expectations import DECLARED, Expected, checked_kind
from rota.core.jobs.job import JobDefinition
from rota.errors import Invalid, NotExpected
from rota.values.actor import checked_actor

if TYPE_CHECKING:
    from rota.store import Store


class ExpectationsClient:
    """Expectations of jobs and schedules: `kind` is "job" or "schedule", and `name` the name of one.

    All expectations are checked every `ROTA_EXPECT`.
    """

    def __init__(self, store: Store, job: Callable[[str], Awaitable[JobDefinition]]) -> None:
        self._store = store
        self._job = job

    async def update(self, kind: str, name: str, *, actor: str | None = None, **expect: Any) -> Expected:
        """Change the given expectations of a job or schedule; None removes one. All its expectations now belong to the
        caller: declarations in code no longer change them."""
        owner = checked_actor(actor) or "api"
        if owner == DECLARED:
            raise Invalid(f"actor must not be {DECLARED!r}", hint="that name is reserved for declarations in code")
        if checked_kind(kind) == "job":
            await self._job(name)
        await self._store.expectations.update(kind, name, expect, owner)
        return await self.get(kind, name)

    async def get(self, kind: str, name: str) -> Expected:
        """Return the expectations of a job or schedule; raise `NotExpected` if there are none."""
        expected = await self.find(kind, name)
        if expected is None:
            raise NotExpected(kind, name)
        return expected

    async def find(self, kind: str, name: str) -> Expected | None:
        """Return the expectations of a job or schedule, or None if there are none."""
        return next(iter(await self._store.expectations.list(checked_kind(kind), name)), None)

    async def delete(self, kind: str, name: str, *, actor: str | None = None) -> bool:
        """Delete the expectations of a job or schedule, which ends their breaches; return whether there were any.
        Expectations declared in code return when their declaration changes."""
        if checked_kind(kind) == "job":
            await self._job(name)
        return await self._store.expectations.delete(kind, name, checked_actor(actor))

    async def list(self, *, breached: bool = False) -> Sequence[Expected]:
        """List expectations of all jobs and schedules; with `breached`, only those that are not met."""
        expectations = await self._store.expectations.list()
        return [expected for expected in expectations if expected.breaches] if breached else expectations
