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
            found: list[FailedRun] = []
            looked_to = LAST_ID
            for _ in range(1 if scope is None else _MOST_LOOKS):
                rows = await tx.fetch("newest_faults", first=NIL_ID, last=looked_to, most=most + 1)
                faults = [FailedRun(str(row[0]), *row[1:]) for row in rows[:most] if since <= row[4] < until]
                faults = [fault for fault in faults if job in (None, fault.job)]
                found += faults if scope is None else await _of_scope(tx, faults, scope)
                if len(rows) <= most and len(found) <= most:
                    return found, False
                if len(rows) <= most or len(found) >= most:
                    break
                looked_to = str(rows[most - 1][0])
            return found[:most], True  # an old run may have ended late: any that was left out may be of this time

        return await self._database.read(body)


async def _of_scope(tx: Tx, faults: list[FailedRun], scope: Scope) -> list[FailedRun]:
    mine = await read.of_scope(tx, [fault.run_id for fault in faults], scope)
    return [fault for fault in faults if fault.run_id in mine]
