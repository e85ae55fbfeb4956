"""`client.quotas`: limits per scope, over all jobs."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.limits.quotas import QuotaOf, RateOption, checked_place, quota_of
from rota.errors import UnknownQuota
from rota.store import Store
from rota.values.actor import checked_actor

_SOMEBODY = "operator"


class QuotasClient:
    """Quotas of scopes. `kind` and `id` name a scope; without an `id`, the quota applies to each scope of that kind
    that has none of its own."""

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
        """Set a quota, replacing the previous one. It also applies to runs that already wait or run."""
        place = checked_place(kind, id)
        owner = checked_actor(actor) or _SOMEBODY
        await self._store.quotas.update(*place, quota_of(max_concurrency, max_queued, rate), owner)
        return await self.get(kind, id)

    async def get(self, kind: str, id: str | None = None) -> QuotaOf:
        """Return the quota of a scope, or of each scope of a kind."""
        for quota in await self.list():
            if (quota.kind, quota.id) == (kind, id):
                return quota
        raise UnknownQuota(kind, id)

    async def delete(self, kind: str, id: str | None = None, *, actor: str | None = None) -> None:
        """Delete a quota. A scope whose own quota is deleted falls under that of its kind, if there is one."""
        if not await self._store.quotas.delete(*checked_place(kind, id), checked_actor(actor)):
            raise UnknownQuota(kind, id)

    async def list(self) -> Sequence[QuotaOf]:
        """List all quotas."""
        return await self._store.quotas.list()
