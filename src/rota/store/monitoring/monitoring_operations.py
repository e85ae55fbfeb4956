"""Store operations for monitoring: the overview, charts, the timeline."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.monitoring.counters import Rows
from rota.core.monitoring.timeline import Asked
from rota.core.schedules.recent_runs import Recent
from rota.store.databases.database import Database
from rota.store.monitoring import counters, overview, recent_runs, timeline
from rota.store.monitoring.overview import OverviewFacts
from rota.store.monitoring.timeline import TimelineRows


class MonitoringStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, silence: int, stuck_for: int) -> OverviewFacts:
        return await self._database.read(lambda tx: overview.read(tx, silence, stuck_for))

    async def recent(self, names: Sequence[str], limit: int) -> dict[str, Recent]:
        """Return the last runs of each of these schedules."""
        return await self._database.read(lambda tx: recent_runs.recent(tx, names, limit))

    async def record(self, source: str, rows: Rows) -> None:
        """Write a process's counters of these spans, in place of what it wrote before."""
        await self._database.transact(lambda tx: counters.record(tx, source, rows))

    async def measure(self, now: int) -> bool:
        """Write the lengths of the queues, once per span by whichever process comes first.

        Return whether this process did.
        """
        if not await self._database.glance(lambda tx: counters.unmeasured(tx, now)):
            return False
        spans = await self._database.transact(lambda tx: counters.begin_measuring(tx, now))
        if spans:
            measured = await self._database.read(counters.measured)
            await self._database.transact(
                lambda tx: counters.record(tx, counters.NOBODY, dict.fromkeys(spans, measured))
            )
        return bool(spans)

    async def counted(self, span: int, first: int, last: int) -> list[tuple[int, str]]:
        """Return counters of spans (60, 300 or 3600 seconds) that began at `first` or later, and before `last`."""
        return await self._database.read(lambda tx: counters.between(tx, span, first, last))

    async def timeline(self, query: Asked) -> TimelineRows:
        return await self._database.read(lambda tx: timeline.read(tx, query, self._database.clock))
