"""The newest failed runs, as many as can be read in a moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rota.core.monitoring.error_groups import (
    MOST_SEARCHED,
    ErrorGroup,
    FailedRun,
    FoundGroups,
    GroupQuery,
    alike_of,
    checked_window,
    grouped,
)
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.core.runs.run import Run
from rota.store.databases.database import Database, Tx
from rota.store.runs import read
from rota.values.instants import instant
from rota.values.scope import Scope

Matches = Callable[[ErrorGroup, Run], bool]
"""Return whether a group is asked for, given its newest run."""

_MOST = 10_000
_BATCH = 100
_MOST_LOOKS = 10


class ErrorGroupStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def groups(self, query: GroupQuery, matches: Matches | None = None) -> FoundGroups:
        """Return groups of failed runs with the newest run of each, in one transaction; only those that match, among
        the first `MOST_SEARCHED`."""

        async def body(tx: Tx) -> FoundGroups:
            ((now,),) = await tx.fetch("now")
            since, until = checked_window(query.since, query.until, instant(now))
            failed, truncated = await _between(tx, since, until, query.job, query.scope, _MOST)
            groups = grouped(failed, since, until, query.order)
            if query.all_jobs:
                largest = sorted(groups, key=lambda group: group.count, reverse=True)[:MOST_SEARCHED]
                alike = alike_of(largest, await _newest(tx, largest))
                groups = grouped(failed, since, until, query.order, alike)
            following = [group for group in groups if query.after is None or group.place(query.order) < query.after]
            if matches is None:
                found = following[: query.limit]
                newest = await _newest(tx, found)
                return FoundGroups(found, newest, since, until, truncated, more=len(following) > len(found))
            searched = following[:MOST_SEARCHED]
            found, newest = await _search(tx, searched, matches, query.limit + 1)
            cut = truncated or len(following) > len(searched)
            return FoundGroups(found[: query.limit], newest, since, until, cut, more=len(found) > query.limit)

        return await self._database.read(body)

    async def between(
        self, since: int, until: int, job: str | None, scope: Scope | None, most: int = _MOST
    ) -> tuple[list[FailedRun], bool]:
        """Return failed runs that ended in this time, among the newest `most`, and whether there may be more.

        With a scope, `most` counts its own runs: failures of others must not push them out. So it reads further, but at
        most `_MOST_LOOKS` batches.
        """

        return await self._database.read(lambda tx: _between(tx, since, until, job, scope, most))


async def _newest(tx: Tx, groups: Sequence[ErrorGroup]) -> dict[str, Run]:
    runs = await read.runs_by_id(tx, [group.last_run_id for group in groups]) if groups else []
    return {run.id: run for run in runs}


async def _search(
    tx: Tx, groups: Sequence[ErrorGroup], matches: Matches, most: int
) -> tuple[list[ErrorGroup], dict[str, Run]]:
    """Return the first `most` groups that match, and their newest runs."""
    found: list[ErrorGroup] = []
    newest: dict[str, Run] = {}
    for start in range(0, len(groups), _BATCH):
        batch = groups[start : start + _BATCH]
        runs = await _newest(tx, batch)
        found += [group for group in batch if group.last_run_id in runs and matches(group, runs[group.last_run_id])]
        newest |= {group.last_run_id: runs[group.last_run_id] for group in found if group.last_run_id in runs}
        if len(found) >= most:
            break
    return found[:most], newest


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
