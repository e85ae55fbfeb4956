"""The store's questions for those who look: the first page, charts, the timeline."""

from __future__ import annotations

from rota.store import overview
from rota.store.database import Database
from rota.store.overview import Seen


class InsightStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, silence: int, stuck_for: int) -> Seen:
        return await self._database.read(lambda tx: overview.seen(tx, silence, stuck_for))
