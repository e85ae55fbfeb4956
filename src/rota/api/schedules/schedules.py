"""`/api/v1/schedules`: the verbs of `client.schedules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import discretion, told
from rota.api.operations.verb_operation import routes_of
from rota.client.client import Client
from rota.client.schedules.schedules import SchedulesClient
from rota.core.access.roles import Role


async def explain_schedule(request: Request, client: Client, arguments: Mapping[str, Any]) -> Any:
    """Explain a plan time. An error may quote a secret of its run's payload."""
    explanation = await client.schedules.explain(**arguments)
    visible: Any = explanation
    failed = [run["run_id"] for run in explanation.facts.get("runs", ()) if run.get("error")]
    if failed and not identity_of(request).may(Role.ADMIN):
        for run in await client.get_many(failed):
            visible = told(request, discretion(request, run), visible)
    return visible


ROUTES = routes_of(SchedulesClient, "schedules", explain=explain_schedule)
