"""Store operations on the ledger: list, verify and explain plan times, and backfill them."""

from __future__ import annotations

from rota.core.ledger.audit import Event
from rota.core.ledger.backfill import Backfill, BackfillOrder
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.ledger.occurrences import Occurrence, OccurrenceQuery
from rota.core.ledger.verify import Verification
from rota.core.monitoring.doctor import Symptoms
from rota.store.databases.database import Database, Tx
from rota.store.ledger import audit, backfill, explain, occurrences
from rota.store.monitoring import doctor
from rota.store.planning.plan import NewId
from rota.store.runs.read import about
from rota.store.schedules import change
from rota.values.scope import Scope


class LedgerStore:
    def __init__(self, database: Database, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id

    async def occurrences(self, name: str, query: OccurrenceQuery) -> list[Occurrence]:
        return await self._database.read(lambda tx: occurrences.read_occurrences(tx, name, query))

    async def occurrence_page(self, name: str, query: OccurrenceQuery, most: int) -> tuple[list[Occurrence], bool]:
        return await self._database.read(lambda tx: occurrences.read_page(tx, name, query, most))

    async def verify(self, name: str, *, thorough: bool = True) -> Verification:
        return await self._database.read(lambda tx: occurrences.verify(tx, name, thorough=thorough))

    async def explain(self, name: str, at: int | None, silence: int) -> Explanation:
        return await self._database.read(lambda tx: explain.explain_schedule(tx, name, at, silence))

    async def explain_run(self, part: str, silence: int, within: Scope | None = None) -> Explanation:
        return await self._database.read(lambda tx: explain.explain_one_run(tx, part, silence, within))

    async def events_of_run(self, part: str, within: Scope | None = None) -> list[Event]:
        return await about(self._database, part, within, audit.events_of_run)

    async def symptoms(self, silence: int, stuck_for: int) -> Symptoms:
        return await self._database.read(lambda tx: doctor.symptoms(tx, silence, stuck_for))

    async def backfill(self, name: str, order: BackfillOrder) -> Backfill:
        """Backfill a schedule. Repeated after an unknown outcome, it finds its runs and returns the first answer."""
        answers: list[Backfill] = []

        async def body(tx: Tx) -> Backfill:
            row = await change.locked(tx, name)
            if not answers or not await backfill.is_done(tx, answers[-1]):
                answers.append(await backfill.backfill(tx, row, order, self._new_id))
            else:
                tx.wake(None)  # the transaction that made them did not come to tell
            return answers[-1]

        return await self._database.transact(body)
