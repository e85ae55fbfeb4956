"""Verbs about the audit trail; part of `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.ledger.audit import KINDS, Event, event_in
from rota.errors import Invalid, did_you_mean
from rota.verbs.examples import EVENT
from rota.verbs.pages import Limit, Page
from rota.verbs.verb import verb
from rota.verbs.wire import Answer

if TYPE_CHECKING:
    from rota.store import Store

EVENTS = Answer(Event, lambda event: event, event_in)
"""Form of events: JSON alone does not tell the instants in their details from texts."""

Seq = Annotated[int, Meta(ge=0, le=2**63 - 1, description="Last `seq` of the previous page")]
_BY_SEQ = Page[Event](lambda event: event.seq, after="before")


class AuditVerbs:
    """Verbs about the audit trail."""

    store: Store

    @verb(
        "GET", "/audit", Role.VIEWER, query=("actor",), page=_BY_SEQ, answer=EVENTS, gives=EVENT,
        operation="list_audit_events",
    )  # fmt: skip
    async def audit(
        self,
        *,
        kind: Annotated[str | None, Meta(description=f"Kind of the subject: {', '.join(KINDS)}")] = None,
        subject: Annotated[str | None, Meta(description="Whole id of a run or worker, or a name")] = None,
        actor: Annotated[str | None, Meta(description="Who did it, such as `cli:ann` or `policy:overlap`")] = None,
        limit: Limit = 50,
        before: Seq | None = None,
    ) -> Sequence[Event]:
        """List actions of people and policies, newest first. `before` is the last `seq` of the previous page.

        `subject` is the whole id of a run or worker, or the name of a job, schedule or queue.
        """
        if kind is not None and kind not in KINDS:
            raise Invalid(f"unknown kind of event: {kind!r}", hint=did_you_mean(kind, KINDS))
        filters = {"kind": kind, "subject": subject, "actor": actor}
        columns = {column: value for column, value in filters.items() if value is not None}
        return await self.store.events.audit(columns, limit, before)
