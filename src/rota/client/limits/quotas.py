"""Every question and command about quotas: `client.quotas`."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.limits.quotas import QuotaOf, RateOption, checked_place, quota_of
from rota.errors import UnknownQuota
from rota.store import Store
from rota.values.actor import checked_actor

_SOMEBODY = "operator"


class QuotasClient:
    """`kind` and `id` name a scope; without an id, each scope of that kind that has no quota of its own is meant."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def update(
        self,
        kind: str,
        id: str | None = None,
        *,
        max_concurrency: int | None = None,
        max_queued: int | None = None,
        rate: RateOption = None,
        actor: str | None = None,
    ) -> QuotaOf:
        """In place of the one that was there. The runs that wait or run already come under it, too."""
        place = checked_place(kind, id)
        owner = checked_actor(actor) or _SOMEBODY
        await self._store.quotas.update(*place, quota_of(max_concurrency, max_queued, rate), owner)
        return await self.get(kind, id)

    async def get(self, kind: str, id: str | None = None) -> QuotaOf:
        """The quota of a scope, or of each scope of a kind."""
        for quota in await self.list():
            if (quota.kind, quota.id) == (kind, id):
                return quota
        raise UnknownQuota(kind, id)

    async def delete(self, kind: str, id: str | None = None, *, actor: str | None = None) -> None:
        """A scope that had its own is under that of its kind then, if there is one."""
        if not await self._store.quotas.delete(*checked_place(kind, id), checked_actor(actor)):
            raise UnknownQuota(kind, id)

    async def list(self) -> Sequence[QuotaOf]:
        """All quotas."""
        return await self._store.quotas.list()
