"""Attempts of runs as numbered executions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request

from rota.api.auth.identity import identity_of
from rota.api.operations.routing import joined
from rota.api.operations.verb_operation import routes_of
from rota.client.client import Client
from rota.client.jobs.executions import ExecutionVerbs
from rota.core.access.roles import Role
from rota.core.monitoring.executions import Execution, Executions
from rota.core.runs.redaction import Discreet
from rota.errors import UnknownRun


async def list_executions(request: Request, client: Client, arguments: Mapping[str, Any]) -> Executions:
    """List the executions of a job as the caller may see them."""
    page = await client.executions(**arguments)
    return msgspec.structs.replace(page, executions=await _shown(request, client, page.executions))


async def get_execution(request: Request, client: Client, arguments: Mapping[str, Any]) -> Execution:
    """Return an execution as the caller may see it."""
    for execution in await _shown(request, client, [await client.execution(**arguments)]):
        return execution
    raise UnknownRun(arguments["execution_id"])  # it was pruned meanwhile


async def _shown(request: Request, client: Client, executions: Sequence[Execution]) -> list[Execution]:
    """Redact secrets of the runs' payloads for callers who may not see them."""
    if identity_of(request).may(Role.ADMIN) or not executions:
        return list(executions)
    runs = await client.get_many(list({execution.run_id for execution in executions}), gone_ok=True)
    discreet = {run.id: Discreet(run) for run in runs}
    return [
        _redacted(execution, discreet[execution.run_id]) for execution in executions if execution.run_id in discreet
    ]


def _redacted(execution: Execution, discreet: Discreet) -> Execution:
    return msgspec.structs.replace(
        execution,
        error_message=discreet.text(execution.error_message),
        metadata=discreet.value(execution.metadata),
    )


ROUTES = joined(
    [
        *routes_of(ExecutionVerbs, below="/jobs/{name}/executions", executions=list_executions),
        *routes_of(ExecutionVerbs, below="/executions", execution=get_execution),
    ]
)
