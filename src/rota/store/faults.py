"""The newest runs that went wrong, as many as can be looked at in a moment."""

from __future__ import annotations

from rota.core.faults import Fault
from rota.core.scope import Scope
from rota.store.database import Database, Row, Tx

_FIRST_ID, _LAST_ID = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
_MOST = 10_000


class FaultStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def between(
        self, since: int, until: int, job: str | None, scope: Scope | None, most: int = _MOST
    ) -> tuple[list[Fault], bool]:
        """Those that ended in this time, of the newest `most`; and whether there may be others."""

        async def body(tx: Tx) -> tuple[list[Fault], bool]:
            rows = await tx.fetch("newest_faults", first=_FIRST_ID, last=_LAST_ID, most=most)
            found = [Fault(str(row[0]), *row[1:]) for row in rows if since <= row[4] < until]
            found = [fault for fault in found if job in (None, fault.job)]
            if scope is not None:
                mine = await _of_scope(tx, [fault.run_id for fault in found], scope)
                found = [fault for fault in found if fault.run_id in mine]
            return found, len(rows) == most and await _is_younger(tx, rows[-1], since)

        return await self._database.read(body)


async def _is_younger(tx: Tx, oldest: Row, since: int) -> bool:
    """Than the time asked for: then older ones that were not looked at may belong to it."""
    created = await tx.fetch("created_of", id=str(oldest[0]))
    return not created or int(created[0][0]) >= since


async def _of_scope(tx: Tx, run_ids: list[str], scope: Scope) -> set[str]:
    sql = "select id from rota_run where {among_ids} and scope_kind = :kind and scope_id = :scope"
    rows = await tx.fetch_sql(sql, ids=",".join(run_ids), kind=scope.kind, scope=scope.id) if run_ids else []
    return {str(row[0]) for row in rows}
