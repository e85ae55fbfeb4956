"""Upkeep in batches: old rows are dropped, and ended runs counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from rota.core.jobs.job import Retention
from rota.core.runs.claim import NIL_ID
from rota.store.databases.database import Database, Row, Tx, Work
from rota.store.databases.pinned_plans import Turn, walk_indexes
from rota.store.ledger import compact
from rota.store.monitoring import count_runs, counters
from rota.store.runs import prune
from rota.store.workers import requirements

log = logging.getLogger("rota.store")

T = TypeVar("T")

_FIRST_KEY = ""
_KEY_BATCHES = 3
_AT_ONCE = 100

RetentionOf = Callable[[str], Retention]


class _Survey(msgspec.Struct, frozen=True):
    """Jobs that have runs, those of the first of them that have something to do, and what else is due."""

    jobs: list[str]
    due: list[str]
    has_events: bool
    has_counts: bool
    has_workers: bool


class Upkeep:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._keys_to = _FIRST_KEY

    async def prune(self, retention_of: RetentionOf, *, thorough: bool = True) -> int:
        """Prune everything prunable now, in batches, so that workers come in between; and what has ended is counted.

        `thorough` also looks through what is seldom there. One job's trouble is told when all the others are done.
        """
        await self._drop_keys(thorough=thorough)
        survey = await self._look(partial(_survey, retention_of=retention_of))
        jobs = survey.jobs if thorough else [*survey.due, *await self._due(survey.jobs[_AT_ONCE:], retention_of)]
        total, troubles = await self._each(jobs, retention_of, partial(self._prune_runs, thorough=thorough))
        if thorough:  # these go through all schedules of a job
            scheduled = await self._look(compact.jobs_of_schedules)
            troubles += (await self._each(scheduled, retention_of, self._prune_schedules))[1]
            await self._in_batches(compact.long_deleted, compact.drop_schedules)
        if survey.has_events:
            await self._in_batches(prune.old_events, prune.drop_events)
        if survey.has_counts:
            await self._in_batches(counters.old_counts, counters.drop_counts)
        if survey.has_workers:
            await self._database.transact(prune.drop_silent_workers)
        if thorough and await self._look(requirements.any_unused):
            await self._database.transact(requirements.drop_unused)
        if troubles:
            raise troubles[0]
        return total

    async def _due(self, jobs: Sequence[str], retention_of: RetentionOf) -> list[str]:
        """Return those of the jobs that have something to prune or to count, by one transaction for many."""
        due: list[str] = []
        for first in range(0, len(jobs), _AT_ONCE):
            due += await self._look(partial(_due, jobs=jobs[first : first + _AT_ONCE], retention_of=retention_of))
        return due

    async def _each(
        self, jobs: Sequence[str], retention_of: RetentionOf, prune_job: Callable[[str, Retention], Awaitable[int]]
    ) -> tuple[int, list[Exception]]:
        """Prune job by job. Troubles are told at the end: one broken retention must not let all other tables grow."""
        total = 0
        troubles: list[Exception] = []
        for job in jobs:
            try:
                total += await prune_job(job, retention_of(job))
            except Exception as error:
                log.warning("job %s: %s", job, error)
                troubles.append(error)
        return total, troubles

    async def _drop_keys(self, *, thorough: bool) -> None:
        """Drop keys, before the runs: a job that is not repeatable gets its key back while its run says that it failed.

        Most keys are held by runs that wait: unless it is thorough, it goes through some of them, and the next time on
        from there.
        """
        after, batches = (_FIRST_KEY, None) if thorough else (self._keys_to, _KEY_BATCHES)
        while batches is None or batches > 0:
            keys = await self._look(partial(prune.stale_keys, after=after))
            # Dropped in another transaction than the look: the statement checks each key again, because it may have got
            # a new holder in between.
            if keys.found:
                await self._database.transact(prune.drop_keys(keys.found))
            after = keys.last or _FIRST_KEY
            if keys.last is None:
                break
            # Counted down also after an empty batch: what is bounded is the walk, not the number of keys that go.
            batches = None if batches is None else batches - 1
            await asyncio.sleep(0)
        self._keys_to = after

    async def _count_passed(self, job: str) -> None:
        after: str | None = NIL_ID
        while after is not None:
            passed: Turn = await self._look(partial(count_runs.passed_runs, job=job, after=after))
            if passed.found:
                await self._database.transact(count_runs.count_passed(job, after))
            after = passed.last
            if after is not None:
                await asyncio.sleep(0)

    async def _prune_runs(self, job: str, retention: Retention, *, thorough: bool) -> int:
        prunable = partial(prune.prunable, job=job, retention=retention)
        total = await self._in_batches(prunable, partial(prune.drop_runs, retention=retention))
        await self._in_batches(partial(count_runs.next_runs, job=job), lambda _: count_runs.count(job))
        if thorough:
            await self._count_passed(job)
        return total + await self._in_batches(partial(compact.surplus_skips, job=job), prune.drop_skips)

    async def _prune_schedules(self, job: str, retention: Retention) -> int:
        await self._in_batches(partial(compact.old_missed, job=job, retention=retention), compact.fold_missed)
        await self._in_batches(partial(compact.gone_scopes, job=job, retention=retention), compact.forget_scopes)
        return 0

    async def _in_batches(self, look: Work[Sequence[Row]], drop: Callable[[Sequence[Row]], Work[int]]) -> int:
        """Mostly there is nothing to drop: looking blocks nobody, dropping takes SQLite's only write lock."""
        total = 0
        while old := await self._look(look):
            count = await self._database.transact(drop(old))
            total += count
            if not prune.is_full_bite(count):  # the rest, if any, is another janitor's
                break
            await asyncio.sleep(0)
        return total

    async def _look(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Look for something to do. Mostly there is nothing, so it must cost little, whatever the tables hold."""

        async def body(tx: Tx) -> T:
            await walk_indexes(tx)
            return await work(tx)

        return await self._database.read(body)


async def _survey(tx: Tx, retention_of: RetentionOf) -> _Survey:
    """Look for everything in one transaction: every process does so all day, and mostly nothing is due."""
    jobs = await prune.jobs_with_runs(tx)
    return _Survey(
        jobs=jobs,
        has_events=bool(await prune.old_events(tx)),
        has_counts=bool(await counters.old_counts(tx)),
        has_workers=await prune.silent_workers(tx),
        due=await _due(tx, jobs[:_AT_ONCE], retention_of),
    )


async def _due(tx: Tx, jobs: Sequence[str], retention_of: RetentionOf) -> list[str]:
    return [job for job in jobs if await _is_due(tx, job, retention_of)]


async def _is_due(tx: Tx, job: str, retention_of: RetentionOf) -> bool:
    try:
        return bool(
            await prune.prunable(tx, job, retention_of(job))
            or await count_runs.next_runs(tx, job)
            or await compact.surplus_skips(tx, job)
        )
    except Exception:
        # Whatever it is, it comes again where this job is pruned by itself, and is told there. After an error
        # PostgreSQL refuses all that follows in this transaction, so the other jobs count as due, too.
        return True
