"""Verbs about the audit trail; part of `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rota.client.runs.runs import MOST_LISTED
from rota.client.schedules.definition import require_limit
from rota.core.ledger.audit import KINDS, Event
from rota.errors import Invalid, did_you_mean

if TYPE_CHECKING:
    from rota.store import Store


class AuditVerbs:
    """Verbs about the audit trail."""

    store: Store

    async def audit(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        actor: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> Sequence[Event]:
        """List actions of people and policies, newest first. `before` is the last `seq` of the previous page.

        `subject` is the whole id of a run or worker, or the name of a job, schedule or queue.
        """
        require_limit(limit, MOST_LISTED)
        if kind is not None and kind not in KINDS:
            raise Invalid(f"unknown kind of event: {kind!r}", hint=did_you_mean(kind, KINDS))
        filters = {"kind": kind, "subject": subject, "actor": actor}
        columns = {column: value for column, value in filters.items() if value is not None}
        return await self.store.events.audit(columns, limit, before)
