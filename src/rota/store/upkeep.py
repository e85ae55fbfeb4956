"""What the janitor does: old rows away and ended runs counted, in bites."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from rota.core.model import Retention
from rota.store import counting, counts, folding, needs, pruning
from rota.store.database import Database, Row, Work

log = logging.getLogger("rota.store")


class Upkeep:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def prune(self, retention_of: Callable[[str], Retention], *, thorough: bool = True) -> int:
        """Everything prunable now, in bites, so that workers come in between; and what has ended is counted.

        `thorough` also looks through what is seldom there. One job's trouble is told when all the others are done.
        """
        await self._in_bites(pruning.stale_keys, pruning.drop_keys)
        total = 0
        troubles: list[Exception] = []
        steps = ((pruning.jobs_with_runs, self._prune_runs), (folding.jobs_of_schedules, self._prune_schedules))
        for find_jobs, prune_job in steps:
            for job in await self._database.read(find_jobs):
                try:
                    total += await prune_job(job, retention_of(job), thorough=thorough)
                except Exception as error:
                    log.warning("job %s: %s", job, error)
                    troubles.append(error)
        await self._in_bites(folding.long_deleted, folding.drop_schedules)
        await self._in_bites(pruning.old_events, pruning.drop_events)
        await self._in_bites(counts.old_counts, counts.drop_counts)
        if await self._database.read(pruning.silent_workers):
            await self._database.transact(pruning.drop_silent_workers)
        if thorough and await self._database.read(needs.any_unused):
            await self._database.transact(needs.drop_unused)
        if troubles:
            raise troubles[0]
        return total

    async def _prune_runs(self, job: str, retention: Retention, *, thorough: bool) -> int:
        total = await self._in_bites(partial(pruning.prunable, job=job, retention=retention), pruning.drop_runs)
        await self._in_bites(partial(counting.next_runs, job=job), lambda _: counting.count(job))
        if thorough:
            await self._in_bites(partial(counting.passed_runs, job=job), lambda _: counting.count_passed(job))
        return total + await self._in_bites(partial(folding.surplus_skips, job=job), pruning.drop_runs)

    async def _prune_schedules(self, job: str, retention: Retention, *, thorough: bool) -> int:
        await self._in_bites(partial(folding.old_missed, job=job, retention=retention), folding.fold_missed)
        if thorough:
            await self._in_bites(partial(folding.gone_scopes, job=job, retention=retention), folding.forget_scopes)
        return 0

    async def _in_bites(self, look: Work[Sequence[Row]], drop: Callable[[Sequence[Row]], Work[int]]) -> int:
        """Mostly there is nothing to drop: looking blocks nobody, dropping takes SQLite's only write lock."""
        total = 0
        while old := await self._database.read(look):
            count = await self._database.transact(drop(old))
            total += count
            if not pruning.is_full_bite(count):  # the rest, if any, is another janitor's
                break
            await asyncio.sleep(0)
        return total
