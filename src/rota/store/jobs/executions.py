"""Attempts of runs as numbered executions, and facts about all of them."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from rota.core.jobs.status import job_state
from rota.core.monitoring.executions import (
    CountedJobs,
    Execution,
    Executions,
    SchedulerFacts,
    counted_jobs,
    execution_of,
)
from rota.errors import NotFound, Unavailable
from rota.store.databases.database import Database, Tx
from rota.store.jobs import jobs
from rota.store.ledger.occurrences import snapshot
from rota.store.monitoring import statistics
from rota.store.runs import read
from rota.values.scope import Scope

_COUNTED = "counted_jobs"


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

    async def scheduler(self) -> SchedulerFacts:
        """Return facts about all jobs, from what was counted last, by any server, unless that is too old.

        To count reads every job; what it found is kept, so that those who ask again and again read a few rows.
        """
        facts, is_new = await self._database.read(_scheduler_facts)
        if is_new:
            text = msgspec.json.encode(facts.counted).decode()
            with suppress(Unavailable):  # whoever only asks is answered, also while nothing can be written
                await self._database.transact(lambda tx: tx.fetch("save_setting", name=_COUNTED, value=text))
        return facts


async def _scheduler_facts(tx: Tx) -> tuple[SchedulerFacts, bool]:
    """Return the facts, and whether the jobs were counted for them: what is kept is too old, or another version of rota
    wrote it."""
    # One snapshot: a job that is deleted meanwhile is counted or not, and never missing in between.
    await snapshot(tx)
    ((now, taken_away),) = await tx.fetch("taken_away")
    kept = await _kept(tx, int(now))
    counted = await _count(tx) if kept is None else kept
    return SchedulerFacts(counted, int(taken_away or 0)), kept is None


async def _kept(tx: Tx, now: int) -> CountedJobs | None:
    for (text,) in await tx.fetch("get_setting", name=_COUNTED):
        with suppress(msgspec.MsgspecError):
            counted = msgspec.json.decode(text, type=CountedJobs)
            if counted.is_fresh(now):
                return counted
    return None


async def _count(tx: Tx) -> CountedJobs:
    names = [name for (name,) in await tx.fetch("job_names")]
    states = [job_state(facts) for facts in await jobs.facts(tx, names)]
    ((now, heartbeat),) = await tx.fetch("newest_heartbeat")
    return counted_jobs(states, await statistics.tally_of_all(tx), int(now), heartbeat)


async def _numbers(tx: Tx, job: str, first: str, last: str) -> dict[str, int]:
    """Return the numbers of the job's runs between two ids, among all that it ever had: pruned ones count, too."""
    pruned = [(str(up_to), int(runs)) for up_to, runs in await tx.fetch("pruned_runs", job=job)]
    ((below,),) = await tx.fetch("count_below", job=job, below=first)
    ids = [str(id) for (id,) in await tx.fetch("ids_of_job_between", job=job, first=first, last=last)]
    return {
        id: int(below) + place + sum(runs for up_to, runs in pruned if up_to <= id) for place, id in enumerate(ids, 1)
    }
