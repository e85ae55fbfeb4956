"""`/api/v1/schedules/{name}/occurrences|explain`: past plan times."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import discretion, told
from rota.api.operations.cursors import cursor_at, place_of
from rota.api.operations.operation import operation
from rota.api.operations.query import Cursor, Instant, checked_query
from rota.api.operations.request import client_of
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.client.client import Client
from rota.client.schedules.history import MOST_OCCURRENCES
from rota.core.access.roles import Role
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.ledger.occurrences import Occurrence, PagePosition, place_after
from rota.verbs.examples import EXPLANATION, OCCURRENCE

_DAY = timedelta(days=1)


class OccurrenceQuery(msgspec.Struct, rename={"from_at": "from", "to_at": "to"}):
    """Plan times from `from` to `to`; by default, the last day."""

    from_at: Instant | None = None
    to_at: Instant | None = None
    limit: Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 1, "maximum": MOST_OCCURRENCES})] = 100
    cursor: Cursor | None = None


class ExplainQuery(msgspec.Struct):
    """`at` is a plan time; by default the newest past one."""

    at: Instant | None = None


@operation(Role.VIEWER, query=OccurrenceQuery, answers=Occurrence, lists=True, gives=OCCURRENCE)
async def list_occurrences(request: Request) -> Response:
    """List what happened to each plan time, oldest first; by default over the last day.

    With `cursor`, `from` and `to` of the first page apply.
    """
    query = checked_query(request, OccurrenceQuery)
    client = await client_of(request)
    from_at, to_at, after = await _window(client, query)
    occurrences = await client.schedules.occurrences(
        request.path_params["name"], from_at, to_at, limit=query.limit, after=after
    )
    place = place_after(occurrences, after) if len(occurrences) == query.limit else None
    return answer(page(occurrences, None if place is None else cursor_at(from_at or to_at - _DAY, to_at, place)))


async def _window(client: Client, query: OccurrenceQuery) -> tuple[datetime | None, datetime, PagePosition | None]:
    if query.cursor is not None:
        return place_of(query.cursor)
    to_at = query.to_at or await client.time()
    return query.from_at, to_at, None


@operation(Role.VIEWER, query=ExplainQuery, answers=Explanation, gives=EXPLANATION)
async def explain_schedule(request: Request) -> Response:
    """Explain why a plan time ran or not, or whether it will; by default the newest past one."""
    client = await client_of(request)
    explanation = await client.schedules.explain(request.path_params["name"], checked_query(request, ExplainQuery).at)
    visible: Any = explanation
    # An error may quote a secret of its run's payload.
    failed = [run["run_id"] for run in explanation.facts.get("runs", ()) if run.get("error")]
    if failed and not identity_of(request).may(Role.ADMIN):
        for run in await client.get_many(failed):
            visible = told(request, discretion(request, run), visible)
    return answer(visible)


ROUTES = [declared("/schedules/{name}/occurrences", GET=list_occurrences)]
