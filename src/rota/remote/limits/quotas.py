"""`client.quotas` over HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.limits.quotas import QuotaOf, RateOption, checked_place, described, quota_of
from rota.remote.decode import items, read
from rota.remote.transport import Transport, path_of


class RemoteQuotas:
    """Quotas of scopes. `kind` and `id` name a scope; without an `id`, the quota applies to each scope of that kind
    that has none of its own."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

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
        quota = described(*checked_place(kind, id), quota_of(max_concurrency, max_queued, rate), owner="")
        body = {name: getattr(quota, name) for name in ("max_concurrency", "max_queued", "rate")}
        return read((await self._transport.ask("PUT", _path(kind, id), body=body, again=True)).body, QuotaOf)

    async def get(self, kind: str, id: str | None = None) -> QuotaOf:
        """Return the quota of a scope, or of each scope of a kind."""
        return read((await self._transport.ask("GET", _path(kind, id))).body, QuotaOf)

    async def delete(self, kind: str, id: str | None = None, *, actor: str | None = None) -> None:
        """Delete a quota. A scope whose own quota is deleted falls under that of its kind, if there is one."""
        checked_place(kind, id)
        await self._transport.ask("DELETE", _path(kind, id))

    async def list(self) -> Sequence[QuotaOf]:
        """List all quotas."""
        return items((await self._transport.ask("GET", path_of("quotas"))).body, QuotaOf)


def _path(kind: str, id: str | None) -> str:
    return path_of("quotas", kind) if id is None else path_of("quotas", kind, id)
