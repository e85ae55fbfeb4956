"""Verbs about a job's runs, and about executions: their attempts, with numbers; part of `Client`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from rota.client.runs.pages import RUN_PAGE, Before
from rota.client.runs.runs import RunVerbs
from rota.core.access.roles import Role
from rota.core.monitoring.executions import Execution, Executions, parts_of
from rota.core.runs.run import RunFilter
from rota.core.runs.search import RunPage
from rota.errors import Forbidden, Invalid
from rota.verbs.examples import EXECUTION, RUN
from rota.verbs.pages import Limit
from rota.verbs.verb import verb

Offset = Annotated[int, Meta(ge=0, le=10_000, description="How many of the newest to leave out")]


class ExecutionVerbs(RunVerbs):
    """Verbs about the runs of a job, and about their attempts as numbered executions."""

    @verb(
        "GET",
        "/jobs/{name}/runs",
        Role.VIEWER,
        names={"before": "cursor"},
        answer=RUN_PAGE,
        gives=RUN,
        operation="list_job_runs",
    )
    async def job_runs(
        self, name: str, run_filter: RunFilter | None = None, *, limit: Limit = 50, before: Before = None
    ) -> RunPage:
        """List the runs of a job, newest first, as `page` lists those of all; raise `UnknownJob` if there is none."""
        run_filter = run_filter or RunFilter()
        if run_filter.job not in (None, name):
            raise Invalid(f"job is {run_filter.job!r:.80}, but the path says {name!r:.80}")
        page = await self.page(msgspec.structs.replace(run_filter, job=name), limit=limit, before=before)
        if not page.runs:
            await self.job_status(name)
        return page

    @verb(
        "GET",
        "/jobs/{name}/executions",
        Role.VIEWER,
        gives={"executions": [EXECUTION], "total": 42, "limit": 50, "offset": 0, "capped": False},
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
