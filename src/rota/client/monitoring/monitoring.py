"""`client.monitoring`: data for dashboards. No query here scans all runs."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from rota.config import Config
from rota.core.access.roles import Role
from rota.core.monitoring.charts import Series, series_of, stretch_of
from rota.core.monitoring.overview import Overview, attention
from rota.core.monitoring.timeline import MOST_ATTEMPTS, Grouping, Timeline, asked_of, timeline_of
from rota.values.clock import HostClock
from rota.values.durations import Duration, in_micros
from rota.values.instants import micros_at
from rota.verbs.examples import OVERVIEW, SERIES, TIMELINE
from rota.verbs.verb import verb
from rota.verbs.wire import Wired

if TYPE_CHECKING:
    from rota.store import Store
    from rota.store.monitoring.overview import OverviewFacts

From = Annotated[datetime | None, Meta(description="Begin of the time range")]
To = Annotated[datetime | None, Meta(description="End of the time range; by default now")]

# Shorter than the pause after which a page asks again; otherwise the page would get the answer it already has and then
# stop asking, although something has changed.
_FRESH = 0.2
_SLACK = 1_000_000


class MonitoringClient:
    """Data for dashboards: overview, charts and timeline."""

    def __init__(self, store: Store, config: Config) -> None:
        self._store = store
        self._silence = in_micros(config.lease)
        self._stuck_for = in_micros(config.lease + config.reaper) + _SLACK
        self._reading = asyncio.Lock()
        self._cached: Overview | None = None
        self._fresh_until = 0.0

    @verb("GET", "/overview", Role.VIEWER, gives=OVERVIEW, operation="get_overview")
    async def overview(self) -> Overview:
        """Return current load, results of the last day, what needs attention, and the next runs.

        The answer is cached for a fifth of a second.
        """
        # One query serves all callers that arrive while it runs.
        async with self._reading:
            began = self._store.clock.monotonic()
            if self._cached is None or began >= self._fresh_until:
                self._cached = await self._read()
                self._fresh_until = began + _FRESH
            return self._cached

    @verb("GET", "/series", Role.VIEWER, gives=SERIES, operation="get_series")
    async def series(
        self,
        from_at: From = None,
        to_at: To = None,
        step: Annotated[Duration | None, Meta(description="Length of a step: whole minutes, `15m`, or hours")] = None,
    ) -> Series:
        """Return metrics over time in steps; by default the last day in steps of 15 minutes.

        They are finished runs by state, percentiles of durations and lag, and queue depths. A step is whole minutes, or
        whole hours if the range begins more than two days ago; at most a thousand steps.
        """
        stretch = stretch_of(from_at, to_at, step, await self._store.now())
        rows = await self._store.monitoring.counted(stretch.span, stretch.first, stretch.to)
        # In a thread: with the counters of many processes, merging would block the event loop.
        return await asyncio.to_thread(series_of, stretch, rows)

    @verb("GET", "/timeline", Role.VIEWER, gives=TIMELINE, operation="get_timeline")
    async def timeline(
        self,
        from_at: From = None,
        to_at: To = None,
        *,
        by: Annotated[str, Wired(Grouping), Meta(description="What a lane is")] = "schedule",
        limit: Annotated[int, Meta(ge=1, le=MOST_ATTEMPTS, description="Maximum number of attempts")] = 500,
    ) -> Timeline:
        """Return the attempts within a time range (by default the last hour) and the plan times up to its end, in lanes
        by `schedule`, `job`, `worker` or `queue`.

        Only runs created up to a day before the range are considered; the newest `limit` attempts are returned.
        """
        query = asked_of(from_at, to_at, by, limit, await self._store.now())
        rows = await self._store.monitoring.timeline(query)
        return await asyncio.to_thread(timeline_of, query, rows.bars, rows.upcoming, more=rows.more)

    async def _read(self) -> Overview:
        clock = self._store.clock
        before = clock.micros()
        snapshot = await self._store.monitoring.overview(self._silence, self._stuck_for)
        offset = _certain_offset(before, micros_at(snapshot.overview.at), clock.micros())
        return self._with_attention(snapshot, offset if isinstance(clock, HostClock) else 0)

    def _with_attention(self, snapshot: OverviewFacts, offset: int) -> Overview:
        """Add what needs attention to the overview."""
        facts = msgspec.structs.replace(snapshot.facts, polls=self._store.database.polls, offset=offset)
        items, count = attention(facts)
        return msgspec.structs.replace(snapshot.overview, attention=items, attention_count=count)


def _certain_offset(before: int, database: int, after: int) -> int:
    """Return by how much this host's clock certainly differs from the database's. The database read its clock between
    `before` and `after`; a time between those is no difference."""
    return before - database if database < before else after - database if database > after else 0
