"""Store operations for monitoring: the overview, charts, the timeline."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.monitoring.counters import Rows
from rota.core.monitoring.timeline import Asked
from rota.core.schedules.recent_runs import Recent
from rota.store.databases.database import Database
from rota.store.monitoring import counters, overview, recent_runs, timeline
from rota.store.monitoring.attention import SnoozeStore
from rota.store.monitoring.overview import OverviewFacts
from rota.store.monitoring.timeline import TimelineRows, UpcomingRows
from rota.values.clock import HostClock


class MonitoringStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.snoozes = SnoozeStore(database)

    async def overview(self, silence: int, stuck_for: int) -> OverviewFacts:
        """Read the overview, and the facts from which attention is derived."""
        clock = self._database.clock
        before = clock.micros()
        found = await self._database.read(lambda tx: overview.read(tx, silence, stuck_for, clock))
        offset = certain_offset(before, found.facts.symptoms.now, clock.micros())
        facts = msgspec.structs.replace(
            found.facts, polls=self._database.polls, offset=offset if isinstance(clock, HostClock) else 0
        )
        return msgspec.structs.replace(found, facts=facts)

    async def recent(self, names: Sequence[str], limit: int) -> dict[str, Recent]:
        """Return the last runs of each of these schedules."""
        return await self._database.read(lambda tx: recent_runs.recent(tx, names, limit))

    async def record(self, source: str, rows: Rows) -> None:
        """Write a process's counters of these spans, in place of what it wrote before."""
        await self._database.transact(lambda tx: counters.record(tx, source, rows))

    async def measure(self) -> counters.Measuring:
        """Write the lengths of the queues, once per span by whichever process comes first."""
        measuring = await self._database.glance(counters.measuring)
        if measuring.is_done:
            return measuring
        spans = await self._database.transact(lambda tx: counters.begin_measuring(tx, measuring.now))
        if spans:  # else nobody waits, which is what the new rows say, or another process has begun
            measured = await self._database.read(counters.measured)
            await self._database.transact(
                lambda tx: counters.record(tx, counters.NOBODY, dict.fromkeys(spans, measured))
            )
        return measuring

    async def counted(self, span: int, first: int, last: int) -> list[tuple[int, str]]:
        """Return counters of spans (60, 300 or 3600 seconds) that began at `first` or later, and before `last`."""
        return await self._database.read(lambda tx: counters.between(tx, span, first, last))

    async def timeline(self, query: Asked) -> TimelineRows:
        return await self._database.read(lambda tx: timeline.read(tx, query, self._database.clock))

    async def upcoming(self, length: int, limit: int) -> UpcomingRows:
        return await self._database.read(lambda tx: timeline.read_upcoming(tx, length, limit))


def certain_offset(before: int, database: int, after: int) -> int:
    """Return by how much this host's clock certainly differs from the database's. The database read its clock between
    `before` and `after`; a time between those is no difference."""
    return before - database if database < before else after - database if database > after else 0
