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
from rota.core.runs.claim import LAST_ID
from rota.errors import NotFound, Unavailable
from rota.store.databases.database import Database, Tx
from rota.store.jobs import jobs
from rota.store.jobs.execution_numbers import Numbers
from rota.store.ledger.occurrences import snapshot
from rota.store.monitoring import statistics
from rota.store.runs import read
from rota.values.scope import Scope

_COUNTED = "counted_jobs"
_WINDOW = 10_000
"""Runs of a job that are looked at together: no page begins later than the ten thousandth execution."""


class ExecutionStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers = Numbers()

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
            number = None if within is not None else (await self._numbers.tell(tx, run.job, [run.id]))[run.id]
            return execution_of(run, attempts[-1], number)

        return await self._database.read(body)

    async def page(self, job: str, limit: int, offset: int, *, declared: jobs.Declared) -> Executions:
        """Return attempts of a job's runs, the newest run first, from the one at `offset` on."""

        async def body(tx: Tx) -> Executions:
            await snapshot(tx)
            await jobs.require_known(tx, job, declared)
            places, total, capped = await _newest(tx, job, limit, offset)
            if not places:
                return Executions([], total, limit, offset, capped)
            ids = list(dict.fromkeys(id for id, _ in places))
            runs = {run.id: run for run in await read.runs_by_id(tx, ids)}
            tries = await read.attempts_of(tx, ids)
            numbers = await self._numbers.tell(tx, job, ids)
            found = [execution_of(runs[id], tries[id, fence], numbers[id]) for id, fence in places]
            return Executions(found, total, limit, offset, capped)

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


async def _newest(tx: Tx, job: str, limit: int, offset: int) -> tuple[list[tuple[str, int]], int, bool]:
    """Return the newest attempts, by run and fence; how many there are, and whether there are more than were counted.

    It walks the job's runs in windows: mostly the first one, which holds all that can be asked for, is enough.
    """
    places: list[tuple[str, int]] = []
    total, before = 0, LAST_ID
    while True:
        window = {"job": job, "before": before}
        ((count, following),) = await tx.fetch("count_executions", walk=_WINDOW, **window)
        if total + count > offset:
            skipped, missing = max(0, offset - total), limit - len(places)
            page = {"limit": missing, "offset": skipped, **window}
            rows = await tx.fetch("executions", walk=min(_WINDOW, skipped + missing), **page)
            if len(rows) < min(missing, count - skipped):  # mostly each of the newest runs has one
                rows = await tx.fetch("executions", walk=_WINDOW, **page)
            places += [(str(id), int(fence)) for id, fence in rows]
        total += int(count)
        if following is None or len(places) == limit:
            return places, total, following is not None
        before = str(following)
