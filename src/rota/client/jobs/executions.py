"""Verbs about executions: runs with numbers, for callers that use these terms; part of `Client`."""

from __future__ import annotations

from rota.client.runs.runs import RunVerbs
from rota.core.monitoring.executions import NumberedRun, NumberedRuns
from rota.errors import Forbidden
from rota.values.scope import scope_text


class ExecutionVerbs(RunVerbs):
    """Verbs about runs as numbered executions."""

    async def executions(self, name: str, *, limit: int = 50, offset: int = 0) -> NumberedRuns:
        """List the runs of a job, newest first, with their numbers; begin with the one at `offset`."""
        if self.scope is not None:  # their numbers count the runs of all scopes
            raise Forbidden(f"only runs of {scope_text(self.scope)} are visible here")
        return await self.store.executions.page(name, limit, offset, declared=self.registry.newest)

    async def execution(self, run_id: str) -> NumberedRun:
        """Return a run with its number among the runs of its job, and its last attempt."""
        return await self.store.executions.get(await self.store.find_run(run_id, self.scope))
