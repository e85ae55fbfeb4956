"""`client.attention`: what needs attention, and what is left alone for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from rota.client.monitoring.overview_reader import OverviewReader
from rota.core.access.roles import Role
from rota.core.monitoring.attention import KINDS, Attention, Snooze, checked_kind, snooze_length
from rota.errors import UnknownAttention
from rota.values.actor import checked_actor
from rota.values.durations import Duration
from rota.values.instants import instant
from rota.verbs.examples import ATTENTION
from rota.verbs.pages import Page
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.store import Store

Kind = Annotated[str, Meta(description=f"Kind of the item: {', '.join(KINDS)}")]
Subject = Annotated[str, Meta(max_length=1_000, description="Subject of the item, if it has one")]
_BY_GRAVITY = Page[Attention](lambda it: (KINDS.index(it.kind), it.subject or ""))


class Unsnoozed(msgspec.Struct, frozen=True):
    """Answer to the end of a snooze."""

    was_snoozed: bool
    """Whether it was snoozed."""


class AttentionClient:
    """Items that need attention, by rules that nobody has to set up."""

    def __init__(self, store: Store, reader: OverviewReader) -> None:
        self._store = store
        self._reader = reader

    @verb("GET", "/attention", Role.VIEWER, page=_BY_GRAVITY, gives=ATTENTION)
    async def list(
        self,
        *,
        kind: Kind | None = None,
        snoozed: Annotated[bool, Meta(description="Those that are snoozed, instead of the others")] = False,
    ) -> Sequence[Attention]:
        """List what needs attention, the gravest kind first, or what is snoozed."""
        known = None if kind is None else checked_kind(kind)
        judged = (await self._reader.read()).judged
        items = judged.snoozed if snoozed else judged.open
        return items if known is None else [it for it in items if it.kind == known]

    @verb(
        "POST",
        "/attention:snooze",
        Role.OPERATOR,
        repeatable=True,
        takes={"kind": "queue_unserved", "subject": "mail", "length": "2h", "reason": "the relay is being moved"},
        gives={**ATTENTION, "snoozed_until": "2026-01-31T10:00:00Z", "snoozed_by": "token:ada",
               "snooze_reason": "the relay is being moved"},
        operation="snooze_attention",
    )  # fmt: skip
    async def snooze(
        self,
        kind: Kind,
        subject: Subject | None = None,
        length: Annotated[Duration, Meta(description="For how long; at most `30d`")] = "4h",
        *,
        reason: Annotated[str, Meta(max_length=1_000, description="Why, for the audit log")] | None = None,
        actor: str | None = None,
    ) -> Attention:
        """Leave an item alone for a while. It is back when that is over, or when its weight has doubled.

        The same about another subject is another item. Raise `UnknownAttention` if nothing of the kind needs attention.
        """
        micros, who = snooze_length(length), checked_actor(actor)
        self._reader.forget()  # the item may be newer than the last answer
        seen = await self._reader.read()
        items = {(it.kind, it.subject): it for it in (*seen.judged.open, *seen.judged.snoozed)}
        found = items.get((checked_kind(kind), subject or None))
        if found is None:
            raise UnknownAttention(kind, subject)
        until = seen.now + micros
        await self._store.monitoring.snoozes.save(Snooze(kind, subject or "", until, found.weight, who, reason))
        self._reader.forget()
        return msgspec.structs.replace(found, snoozed_until=instant(until), snoozed_by=who, snooze_reason=reason)

    @verb(
        "POST",
        "/attention:unsnooze",
        Role.OPERATOR,
        repeatable=True,
        takes={"kind": "queue_unserved", "subject": "mail"},
        gives={"was_snoozed": True},
        operation="unsnooze_attention",
    )
    async def unsnooze(self, kind: Kind, subject: Subject | None = None, *, actor: str | None = None) -> Unsnoozed:
        """End a snooze."""
        done = await self._store.monitoring.snoozes.delete(checked_kind(kind), subject or "", checked_actor(actor))
        self._reader.forget()
        return Unsnoozed(done)
