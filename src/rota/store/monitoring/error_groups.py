"""The newest failed runs, as many as can be read in a moment."""

from __future__ import annotations

from rota.core.monitoring.error_groups import FailedRun
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.store.databases.database import Database, Tx
from rota.store.runs import read
from rota.values.scope import Scope

_MOST = 10_000
_MOST_LOOKS = 10


class ErrorGroupStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def between(
        self, since: int, until: int, job: str | None, scope: Scope | None, most: int = _MOST
    ) -> tuple[list[FailedRun], bool]:
        """Return failed runs that ended in this time, among the newest `most`, and whether there may be more.

        With a scope, `most` counts its own runs: failures of others must not push them out. So it reads further, but at
        most `_MOST_LOOKS` batches.
        """

        async def body(tx: Tx) -> tuple[list[FailedRun], bool]:
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

        return await self._database.read(body)


async def _of_scope(tx: Tx, runs: list[FailedRun], scope: Scope) -> list[FailedRun]:
    mine = await read.of_scope(tx, [run.run_id for run in runs], scope)
    return [run for run in runs if run.run_id in mine]
