"""The newest runs that went wrong, as many as can be looked at in a moment."""

from __future__ import annotations

from rota.core.claims import LAST_ID, NIL_ID
from rota.core.faults import Fault
from rota.core.scope import Scope
from rota.store.database import Database, Tx

_MOST = 10_000


class FaultStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def between(
        self, since: int, until: int, job: str | None, scope: Scope | None, most: int = _MOST
    ) -> tuple[list[Fault], bool]:
        """Those that ended in this time, of the newest `most`; and whether there may be others."""

        async def body(tx: Tx) -> tuple[list[Fault], bool]:
            rows = await tx.fetch("newest_faults", first=NIL_ID, last=LAST_ID, most=most + 1)
            found = [Fault(str(row[0]), *row[1:]) for row in rows[:most] if since <= row[4] < until]
            found = [fault for fault in found if job in (None, fault.job)]
            if scope is not None:
                mine = await _of_scope(tx, [fault.run_id for fault in found], scope)
                found = [fault for fault in found if fault.run_id in mine]
            return found, len(rows) > most  # an old run may have ended late: any that was left out may be of this time

        return await self._database.read(body)


async def _of_scope(tx: Tx, run_ids: list[str], scope: Scope) -> set[str]:
    sql = "select id from rota_run where {among_ids} and scope_kind = :kind and scope_id = :scope"
    rows = await tx.fetch_sql(sql, ids=",".join(run_ids), kind=scope.kind, scope=scope.id) if run_ids else []
    return {str(row[0]) for row in rows}
