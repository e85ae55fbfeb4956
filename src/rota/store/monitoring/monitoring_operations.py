"""The store's questions for those who look: the first page, charts, the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rota.core.monitoring.counters import Rows
from rota.core.monitoring.recent_runs import Recent
from rota.core.monitoring.timeline import Asked
from rota.store.databases.database import Database
from rota.store.monitoring import counters, overview, recent_runs, timeline
from rota.store.monitoring.overview import OverviewFacts
from rota.store.monitoring.timeline import TimelineRows
from rota.values.instants import instant


class MonitoringStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, silence: int, stuck_for: int) -> OverviewFacts:
        return await self._database.read(lambda tx: overview.seen(tx, silence, stuck_for))

    async def recent(self, names: Sequence[str], limit: int) -> dict[str, Recent]:
        """Of each of these schedules the last runs."""
        return await self._database.read(lambda tx: recent_runs.recent(tx, names, limit))

    async def oldest_queued(self) -> dict[str, datetime]:
        """Of each queue in which runs could be claimed: since when the one could that waits longest."""
        rows = await self._database.read(lambda tx: tx.fetch("oldest_queued"))
        return {queue: instant(at) for queue, at in rows}

    async def record(self, source: str, rows: Rows) -> None:
        """All that a process has counted of these minutes and hours, in place of what it wrote before."""
        await self._database.transact(lambda tx: counters.record(tx, source, rows))

    async def measure(self, now: int) -> bool:
        """How full the queues are, noted once for a minute and once for an hour, by whoever comes first."""
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
        """What was counted by the minute (60) or by the hour (3600) that began then or later, and before `last`."""
        return await self._database.read(lambda tx: counters.between(tx, span, first, last))

    async def timeline(self, asked: Asked) -> TimelineRows:
        return await self._database.read(lambda tx: timeline.found(tx, asked, self._database.clock))
