"""Attempts of runs as numbered executions, and facts about all of them."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.jobs.status import job_state
from rota.core.monitoring.executions import Execution, Executions, SchedulerFacts, execution_of
from rota.errors import NotFound
from rota.store.databases.database import Database, Tx
from rota.store.jobs import jobs
from rota.store.ledger.occurrences import snapshot
from rota.store.monitoring import statistics
from rota.store.runs import read
from rota.values.instants import instant, maybe_instant
from rota.values.scope import Scope


class ExecutionStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, part: str, fence: int | None, within: Scope | None) -> Execution:
        """Return an attempt of a run, given by its id or a part of it; without a fence, the last one.

        Whoever may see one scope only gets no number, which would count the runs of others.
        """

        async def body(tx: Tx) -> Execution:
            await snapshot(tx)
            run = await read.run_within(tx, part, within)
            attempts = [tried for tried in await read.attempts(tx, run.id) if fence in (None, tried.fence)]
            if not attempts:
                raise NotFound(f"run {run.id} has no such execution", hint="an execution is an attempt of a run")
            number = None if within is not None else (await _numbers(tx, run.job, run.id, run.id))[run.id]
            return execution_of(run, attempts[-1], number)

        return await self._database.read(body)

    async def page(self, job: str, limit: int, offset: int, *, declared: jobs.Declared) -> Executions:
        """Return attempts of a job's runs, the newest run first, from the one at `offset` on."""

        async def body(tx: Tx) -> Executions:
            await snapshot(tx)
            await jobs.require_known(tx, job, declared)
            ((total,),) = await tx.fetch("count_executions", job=job)
            rows = await tx.fetch("executions", job=job, limit=limit, offset=offset)
            places = [(str(id), int(fence)) for id, fence in rows]
            if not places:
                return Executions([], int(total), limit, offset)
            ids = list(dict.fromkeys(id for id, _ in places))
            runs = {run.id: run for run in await read.runs_by_id(tx, ids)}
            tries = await read.attempts_of(tx, ids)
            numbers = await _numbers(tx, job, min(ids), max(ids))
            found = [execution_of(runs[id], tries[id, fence], numbers[id]) for id, fence in places]
            return Executions(found, int(total), limit, offset)

        return await self._database.read(body)

    async def scheduler(self, declared: Sequence[str]) -> SchedulerFacts:
        """Return facts about all jobs; those that are `declared` in code may not be stored.

        As many statements for many jobs as for one.
        """

        async def body(tx: Tx) -> SchedulerFacts:
            await snapshot(tx)
            names = sorted({*declared, *(name for (name,) in await tx.fetch("job_names"))})
            states = [job_state(facts) for facts in await jobs.facts(tx, names)]
            tally = await statistics.tally_of_all(tx)
            ((now, heartbeat, taken_away),) = await tx.fetch("newest_heartbeat")
            return SchedulerFacts(states, tally, maybe_instant(heartbeat), instant(now), int(taken_away or 0))

        return await self._database.read(body)


async def _numbers(tx: Tx, job: str, first: str, last: str) -> dict[str, int]:
    """Return the numbers of the job's runs between two ids, among all that it ever had: pruned ones count, too."""
    pruned = [(str(up_to), int(runs)) for up_to, runs in await tx.fetch("pruned_runs", job=job)]
    ((below,),) = await tx.fetch("count_below", job=job, below=first)
    ids = [str(id) for (id,) in await tx.fetch("ids_of_job_between", job=job, first=first, last=last)]
    return {
        id: int(below) + place + sum(runs for up_to, runs in pruned if up_to <= id) for place, id in enumerate(ids, 1)
    }
