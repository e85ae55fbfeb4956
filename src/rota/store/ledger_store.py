"""The store's operations on what became of plan times: told, verified, explained, made up for."""

from __future__ import annotations

from rota.core.backfilling import Backfill
from rota.core.checkups import Symptoms
from rota.core.explaining import Explanation
from rota.core.ledger import Verification
from rota.core.occurrences import Occurrence, Wanted
from rota.core.scope import Scope
from rota.store import backfilling, explaining, health, ledger, schedules
from rota.store.database import Database, Tx
from rota.store.planning import NewId


class LedgerStore:
    def __init__(self, database: Database, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id

    async def occurrences(self, name: str, wanted: Wanted) -> list[Occurrence]:
        return await self._database.read(lambda tx: ledger.read_occurrences(tx, name, wanted))

    async def verify(self, name: str, *, thorough: bool = True) -> Verification:
        return await self._database.read(lambda tx: ledger.verify(tx, name, thorough=thorough))

    async def explain(self, name: str, at: int | None, silence: int) -> Explanation:
        return await self._database.read(lambda tx: explaining.explain_schedule(tx, name, at, silence))

    async def explain_run(self, run_id: str, silence: int, within: Scope | None = None) -> Explanation:
        return await self._database.read(lambda tx: explaining.explain_one_run(tx, run_id, silence, within))

    async def symptoms(self, silence: int, stuck_for: int) -> Symptoms:
        return await self._database.read(lambda tx: health.symptoms(tx, silence, stuck_for))

    async def backfill(self, name: str, order: backfilling.Order) -> Backfill:
        """Repeated after an unknown outcome, it finds the runs that it made, and gives the first answer."""
        answers: list[tuple[Backfill, set[str]]] = []

        async def body(tx: Tx) -> tuple[Backfill, set[str]]:
            row = await schedules.locked(tx, name)
            if not answers or not await backfilling.is_done(tx, answers[-1][0]):
                answers.append(await backfilling.backfill(tx, row, order, self._new_id))
            return answers[-1]

        done, queues = await self._database.transact(body)
        self._database.notify(queues)
        return done
