"""`/api/v1/error-groups`: failed runs, grouped by error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import shown
from rota.api.operations.operation import operation
from rota.api.operations.query import Instant, Limit, checked_query
from rota.api.operations.request import client_of
from rota.api.operations.response import answer
from rota.api.operations.routing import declared
from rota.api.operations.run_filter import scope_of, scope_seen
from rota.core.access.roles import Role
from rota.core.monitoring.error_groups import ErrorGroup, ErrorGroups
from rota.verbs.examples import ERROR_GROUPS


class ErrorGroupsQuery(msgspec.Struct, kw_only=True):
    """Runs between `since` and `until`; by default, the last 24 hours."""

    since: Instant | None = None
    until: Instant | None = None
    job: str | None = None
    scope: Annotated[str, msgspec.Meta(description="kind/id")] | None = None
    limit: Limit = 50


@operation(Role.VIEWER, query=ErrorGroupsQuery, answers=ErrorGroups, gives=ERROR_GROUPS)
async def list_error_groups(request: Request) -> Response:
    """List error groups: runs that failed, timed out or expired, by job and fingerprint, most recent group first.

    `histogram` counts them in 24 equal parts of the time range. `truncated` means that there were more than are
    considered. To retry all runs of a group, send its `job` and `fingerprint` as the filter to `/runs:bulk`.
    """
    query = checked_query(request, ErrorGroupsQuery)
    groups = await (await client_of(request)).error_groups.list(
        since=query.since,
        until=query.until,
        job=query.job,
        scope=scope_seen(request, scope_of(query.scope)),
        limit=query.limit,
    )
    if identity_of(request).may(Role.ADMIN):
        return answer(groups)
    return answer(msgspec.structs.replace(groups, items=await _discreet(request, groups.items)))


async def _discreet(request: Request, groups: Sequence[ErrorGroup]) -> list[ErrorGroup]:
    """Return the groups with their newest run's error as the caller may see it; without groups whose run has been
    pruned meanwhile."""
    newest = [group.last_run_id for group in groups]
    runs = await (await client_of(request)).get_many(newest, gone_ok=True)
    visible = {run.id: shown(request, run) for run in runs}
    return [
        group.said_by(visible[group.last_run_id].error, visible[group.last_run_id].reason)
        for group in groups
        if group.last_run_id in visible
    ]


ROUTES = [declared("/error-groups", GET=list_error_groups, scoped=True)]
