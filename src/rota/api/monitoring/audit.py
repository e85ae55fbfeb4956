"""`/api/v1/audit`: the audit log."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rota.api.operations.cursors import number_before
from rota.api.operations.operation import operation
from rota.api.operations.query import Page, checked_query
from rota.api.operations.request import client_of
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.core.access.roles import Role
from rota.core.ledger.audit import Event
from rota.verbs.examples import EVENT


class AuditQuery(Page, kw_only=True):
    """`subject` is the whole id of a run or a worker, or a name."""

    kind: str | None = None
    subject: str | None = None
    actor: str | None = None


@operation(Role.VIEWER, query=AuditQuery, answers=Event, lists=True, gives=EVENT)
async def list_audit_events(request: Request) -> Response:
    """List actions of people and policies, newest first."""
    query = checked_query(request, AuditQuery)
    events = await (await client_of(request)).audit(
        kind=query.kind,
        subject=query.subject,
        actor=query.actor,
        limit=query.limit,
        before=number_before(query.cursor),
    )
    return answer(page(events, str(events[-1].seq) if len(events) == query.limit else None))


ROUTES = [declared("/audit", GET=list_audit_events)]
