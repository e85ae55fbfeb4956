"""The newest failed runs, as many as can be read in a moment."""

from __future__ import annotations

from rota.core.monitoring.error_groups import FailedRun, FoundGroups, GroupQuery, checked_window, grouped
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.store.databases.database import Database, Tx
from rota.store.runs import read
from rota.values.instants import instant
from rota.values.scope import Scope

_MOST = 10_000
_MOST_LOOKS = 10


class ErrorGroupStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def groups(self, query: GroupQuery) -> FoundGroups:
        """Return groups of failed runs with the newest run of each, in one transaction."""

        async def body(tx: Tx) -> FoundGroups:
            ((now,),) = await tx.fetch("now")
            since, until = checked_window(query.since, query.until, instant(now))
            failed, truncated = await _between(tx, since, until, query.job, query.scope, _MOST)
            following = [group for group in grouped(failed, since, until) if group.follows(query.after)]
            groups = following[: query.limit]
            runs = await read.runs_by_id(tx, [group.last_run_id for group in groups]) if groups else []
            newest = {run.id: run for run in runs}
            return FoundGroups(groups, newest, since, until, truncated, more=len(following) > len(groups))

        return await self._database.read(body)

    async def between(
        self, since: int, until: int, job: str | None, scope: Scope | None, most: int = _MOST
    ) -> tuple[list[FailedRun], bool]:
        """Return failed runs that ended in this time, among the newest `most`, and whether there may be more.

        With a scope, `most` counts its own runs: failures of others must not push them out. So it reads further, but at
        most `_MOST_LOOKS` batches.
        """

        return await self._database.read(lambda tx: _between(tx, since, until, job, scope, most))


async def _between(
    tx: Tx, since: int, until: int, job: str | None, scope: Scope | None, most: int
) -> tuple[list[FailedRun], bool]:
    failed: list[FailedRun] = []
    before = LAST_ID
    for _ in range(1 if scope is None else _MOST_LOOKS):
        rows = await tx.fetch("newest_faults", first=NIL_ID, last=before, most=most + 1)
        batch = [FailedRun(str(id), *facts) for id, *facts in rows[:most]]
        matches = [run for run in batch if since <= run.at < until and job in (None, run.job)]
        failed += matches if scope is None else await _of_scope(tx, matches, scope)
        if len(rows) <= most and len(failed) <= most:
            return failed, False
        if len(rows) <= most or len(failed) >= most:
            break
        before = batch[-1].run_id
    return failed[:most], True  # an old run may have ended late: any that was left out may be of this time


async def _of_scope(tx: Tx, runs: list[FailedRun], scope: Scope) -> list[FailedRun]:
    mine = await read.of_scope(tx, [run.run_id for run in runs], scope)
    return [run for run in runs if run.run_id in mine]
