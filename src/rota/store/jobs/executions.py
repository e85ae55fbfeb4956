"""Runs as numbered executions, and facts about all of them."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.jobs.status import job_state
from rota.core.monitoring.executions import NumberedRun, NumberedRuns, SchedulerFacts
from rota.core.runs.claim import LAST_ID
from rota.store.databases.database import Database, Tx
from rota.store.jobs import jobs
from rota.store.ledger.occurrences import snapshot
from rota.store.runs import read
from rota.values.instants import instant, maybe_instant

_MOST = 1_000_000


class ExecutionStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, run_id: str) -> NumberedRun:
        """Return a run by its whole id."""

        async def body(tx: Tx) -> NumberedRun:
            run = await read.get_run(tx, run_id)
            last = (await read.attempts(tx, run_id))[-1:]
            return NumberedRun(run, await _count(tx, run.job, run_id) + 1, last[0] if last else None)

        return await self._database.read(body)

    async def page(self, job: str, limit: int, offset: int, *, declared: jobs.Declared) -> NumberedRuns:
        """Return runs of a job, newest first, from the one at `offset` on."""

        async def body(tx: Tx) -> NumberedRuns:
            await snapshot(tx)
            await jobs.require_known(tx, job, declared)
            total = await _count(tx, job, LAST_ID)
            ids = [str(id) for (id,) in await tx.fetch("numbered_runs", job=job, limit=limit, offset=offset)]
            return NumberedRuns(await read.runs_by_id(tx, ids), total, total - offset)

        return await self._database.read(body)

    async def scheduler(self, declared: Sequence[str]) -> SchedulerFacts:
        """Return facts about all jobs; those that are `declared` in code may not be stored."""

        async def body(tx: Tx) -> SchedulerFacts:
            await snapshot(tx)
            names = sorted({*declared, *(name for (name,) in await tx.fetch("job_names"))})
            states = [job_state(facts) for facts in await jobs.facts(tx, names)]
            stats = [await jobs.stats(tx, name, declared=None) for name in names]
            ((now, heartbeat),) = await tx.fetch("newest_heartbeat")
            return SchedulerFacts(states, stats, maybe_instant(heartbeat), instant(now))

        return await self._database.read(body)


async def _count(tx: Tx, job: str, below: str) -> int:
    ((count,),) = await tx.fetch("count_below", job=job, below=below, most=_MOST)
    return int(count)
