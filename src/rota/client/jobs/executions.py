"""Verbs about executions: the attempts of a job's runs, with numbers; part of `Client`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from rota.client.runs.runs import RunVerbs
from rota.core.access.roles import Role
from rota.core.monitoring.executions import Execution, Executions, parts_of
from rota.errors import Forbidden
from rota.verbs.examples import EXECUTION
from rota.verbs.pages import Limit
from rota.verbs.verb import verb

Offset = Annotated[int, Meta(ge=0, le=10_000, description="How many of the newest to leave out")]


class ExecutionVerbs(RunVerbs):
    """Verbs about attempts of runs as numbered executions."""

    @verb(
        "GET",
        "/jobs/{name}/executions",
        Role.VIEWER,
        gives={"executions": [EXECUTION], "total": 42, "limit": 50, "offset": 0},
        operation="list_executions",
    )
    async def executions(self, name: str, *, limit: Limit = 50, offset: Offset = 0) -> Executions:
        """List the executions of a job: the attempts of its runs, newest first. A run that has not begun has none."""
        if self.scope is not None:  # their numbers and their total count the runs of all scopes
            raise Forbidden(f"only runs of {self.scope.kind}/{self.scope.id} are visible here")
        return await self.store.executions.page(name, limit, offset, declared=self.registry.newest)

    @verb(
        "GET", "/executions/{id}", Role.VIEWER, names={"execution_id": "id"}, gives=EXECUTION, operation="get_execution"
    )
    async def execution(self, execution_id: str) -> Execution:
        """Return an execution by its id. The id of a run stands for its last attempt."""
        run, fence = parts_of(execution_id)
        return await self.store.executions.get(run, fence, self.scope)
