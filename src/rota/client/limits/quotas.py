"""`client.quotas`: limits per scope, over all jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.limits.quotas import QuotaOf, RateOption, checked_place, checked_scope, quota_of, rate_text
from rota.errors import UnknownQuota
from rota.values.actor import checked_actor
from rota.verbs.examples import QUOTA
from rota.verbs.pages import Page
from rota.verbs.verb import verb
from rota.verbs.wire import Wired

if TYPE_CHECKING:
    from rota.store import Store

Many = Annotated[int, Meta(ge=0, le=1_000_000_000)]

_SOMEBODY = "operator"
_OF_KIND = {"id": None}


class ResumedScope(msgspec.Struct, frozen=True):
    """Answer to the resume of a scope."""

    was_paused: bool
    """Whether it was paused."""


class QuotasClient:
    """Quotas of scopes. `kind` and `id` name a scope; without an `id`, the quota applies to each scope of that kind
    that has none of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @verb("PUT", "/quotas/{kind}/{id}", Role.ADMIN, repeatable=True, takes={"rate": "1000/1h"}, gives=QUOTA)
    @verb(
        "PUT",
        "/quotas/{kind}",
        Role.ADMIN,
        fixed=_OF_KIND,
        repeatable=True,
        takes={"max_concurrency": 5},
        operation="update_quota_of_kind",
    )
    async def update(
        self,
        kind: str,
        id: str | None = None,
        *,
        max_concurrency: Annotated[Many | None, Meta(description="Runs at a time")] = None,
        max_queued: Annotated[Many | None, Meta(description="Runs that may wait; a further one is refused")] = None,
        rate: Annotated[
            RateOption,
            Wired(str | None, rate_text),
            Meta(description='Attempts that may start within a time: `"1000/1h"`'),
        ] = None,
        actor: str | None = None,
    ) -> QuotaOf:
        """Set a quota, replacing the previous one. It also applies to runs that already wait or run. With
        `max_concurrency` 0 the scope is paused, until `resume`; all scopes of a kind, until its quota is set again or
        deleted."""
        place = checked_place(kind, id)
        owner = checked_actor(actor) or _SOMEBODY
        quota = await self._store.quotas.update(*place, quota_of(max_concurrency, max_queued, rate), owner)
        return self._existing(quota, kind, id)

    @verb(
        "POST",
        "/scopes/{kind}/{id}/pause",
        Role.OPERATOR,
        repeatable=True,
        optional_body=True,
        takes={"reason": "its database is being moved"},
        gives={**QUOTA, "paused": True},
        operation="pause_scope",
    )
    async def pause(
        self,
        kind: str,
        id: str,
        *,
        reason: Annotated[str, Meta(max_length=1_000, description="Why, for the audit log")] | None = None,
        actor: str | None = None,
    ) -> QuotaOf:
        """Pause a scope: until it is resumed, none of its runs starts, and its plan times are skipped. Runs that wait
        keep their places, new ones wait, too, and running ones continue."""
        return await self._store.quotas.pause(*checked_scope(kind, id), reason, checked_actor(actor) or _SOMEBODY)

    @verb(
        "POST",
        "/scopes/{kind}/{id}/resume",
        Role.OPERATOR,
        repeatable=True,
        gives={"was_paused": True},
        operation="resume_scope",
    )
    async def resume(self, kind: str, id: str, *, actor: str | None = None) -> ResumedScope:
        """Resume a scope. Its own quota, or that of its kind, applies again.

        Raise `KindPaused` if the quota of its kind pauses it: then nothing of it would start.
        """
        return ResumedScope(await self._store.quotas.resume(*checked_scope(kind, id), checked_actor(actor)))

    @verb("GET", "/quotas/{kind}/{id}", Role.VIEWER, gives=QUOTA)
    @verb("GET", "/quotas/{kind}", Role.VIEWER, fixed=_OF_KIND, operation="get_quota_of_kind")
    async def get(self, kind: str, id: str | None = None) -> QuotaOf:
        """Return the quota of a scope, or of each scope of a kind."""
        return self._existing(await self._store.quotas.get(*checked_place(kind, id)), kind, id)

    @staticmethod
    def _existing(quota: QuotaOf | None, kind: str, id: str | None) -> QuotaOf:
        if quota is None:
            raise UnknownQuota(kind, id)
        return quota

    @verb("DELETE", "/quotas/{kind}/{id}", Role.ADMIN)
    @verb("DELETE", "/quotas/{kind}", Role.ADMIN, fixed=_OF_KIND, operation="delete_quota_of_kind")
    async def delete(self, kind: str, id: str | None = None, *, actor: str | None = None) -> None:
        """Delete a quota. A scope whose own quota is deleted falls under that of its kind, if there is one."""
        if not await self._store.quotas.delete(*checked_place(kind, id), checked_actor(actor)):
            raise UnknownQuota(kind, id)

    @verb("GET", "/quotas", Role.VIEWER, page=Page(lambda quota: (quota.kind, quota.id or "")), gives=QUOTA)
    async def list(self) -> Sequence[QuotaOf]:
        """List all quotas."""
        return await self._store.quotas.list()
