"""Every question and command about expectations: `client.expectations`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from rota.core.alerts.expectations import DECLARED, Expected, checked_kind
from rota.core.jobs.job import JobDefinition
from rota.errors import Invalid, NotExpected
from rota.store import Store
from rota.values.actor import checked_actor


class ExpectationsClient:
    """`kind` is "job" or "schedule", `name` that of one. A watchman looks after all of them every `ROTA_EXPECT`."""

    def __init__(self, store: Store, job: Callable[[str], Awaitable[JobDefinition]]) -> None:
        self._store = store
        self._job = job

    async def update(self, kind: str, name: str, *, actor: str | None = None, **expect: Any) -> Expected:
        """Only what is given changes, and None takes an expectation away. All of them are the caller's from now on:
        what code declares does not change them any more."""
        owner = checked_actor(actor) or "api"
        if owner == DECLARED:
            raise Invalid(f"actor must not be {DECLARED!r}", hint="that is who declares expectations in code")
        if checked_kind(kind) == "job":
            await self._job(name)
        await self._store.expectations.update(kind, name, expect, owner)
        return await self.get(kind, name)

    async def get(self, kind: str, name: str) -> Expected:
        """What is expected of a job or a schedule."""
        found = await self.find(kind, name)
        if found is None:
            raise NotExpected(kind, name)
        return found

    async def find(self, kind: str, name: str) -> Expected | None:
        """None if nothing is expected of it."""
        return next(iter(await self._store.expectations.list(checked_kind(kind), name)), None)

    async def delete(self, kind: str, name: str, *, actor: str | None = None) -> bool:
        """Whether anything was expected. Its breaches end. What code declares is back when its declaration changes."""
        if checked_kind(kind) == "job":
            await self._job(name)
        return await self._store.expectations.delete(kind, name, checked_actor(actor))

    async def list(self, *, breached: bool = False) -> Sequence[Expected]:
        """Of all jobs and schedules of which something is expected; `breached`: only where something is not met."""
        found = await self._store.expectations.list()
        return [one for one in found if one.breaches] if breached else found
