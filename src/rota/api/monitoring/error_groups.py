"""`/api/v1/error-groups`: failed runs, grouped by error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.requests import Request

from rota.api.auth.redaction import shown
from rota.api.operations.verb_operation import routes_of
from rota.client.client import Client
from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.core.monitoring.error_groups import ErrorGroups


async def _list(request: Request, client: Client, arguments: Mapping[str, Any]) -> ErrorGroups:
    """List groups with their newest run's error as the caller may see it."""
    return await client.error_groups.shown_by(partial(shown, request)).list(**arguments)


ROUTES = routes_of(ErrorGroupsClient, "error_groups", list=_list)
