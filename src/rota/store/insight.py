"""The store's questions for those who look: the first page, charts, the timeline."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.recent import Recent
from rota.store import overview, recent
from rota.store.database import Database
from rota.store.overview import Seen


class InsightStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, silence: int, stuck_for: int) -> Seen:
        return await self._database.read(lambda tx: overview.seen(tx, silence, stuck_for))

    async def recent(self, names: Sequence[str], limit: int) -> dict[str, Recent]:
        """Of each of these schedules the last runs."""
        return await self._database.read(lambda tx: recent.recent(tx, names, limit))
