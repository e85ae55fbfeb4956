"""`client.monitoring`: data for dashboards. No query here scans all runs."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rota.client.monitoring.overview_reader import OverviewReader
from rota.config import Config
from rota.core.access.roles import Role
from rota.core.monitoring.charts import Series, series_of, stretch_of
from rota.core.monitoring.overview import MOST_EACH, MOST_LISTED, Overview, UpcomingRuns, period_of, upcoming_runs
from rota.core.monitoring.timeline import MOST_ATTEMPTS, Grouping, Timeline, asked_of, timeline_of
from rota.values.durations import Duration
from rota.verbs.examples import OVERVIEW, SERIES, TIMELINE, UPCOMING
from rota.verbs.verb import verb
from rota.verbs.wire import Wired

if TYPE_CHECKING:
    from rota.store import Store

From = Annotated[datetime | None, Meta(description="Begin of the time range")]
To = Annotated[datetime | None, Meta(description="End of the time range; by default now")]


class MonitoringClient:
    """Data for dashboards: overview, charts and timeline."""

    def __init__(self, store: Store, config: Config, reader: OverviewReader | None = None) -> None:
        self._store = store
        self._reader = reader or OverviewReader(store, config)

    @verb("GET", "/overview", Role.VIEWER, gives=OVERVIEW, operation="get_overview")
    async def overview(self) -> Overview:
        """Return current load, results of the last day, what needs attention, and the next runs.

        The answer is cached for a fifth of a second.
        """
        return (await self._reader.read()).overview

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
        by `schedule`, `job`, `worker` or `queue`; and the plan times that were skipped or missed.

        Only runs created up to a day before the range are considered; the newest `limit` attempts are returned, and
        `complete_from` tells from when on that is all of them.
        """
        query = asked_of(from_at, to_at, by, limit, await self._store.now())
        rows = await self._store.monitoring.timeline(query)
        return await asyncio.to_thread(
            timeline_of, query, rows.bars, rows.upcoming, rows.skipped, rows.ranges, unread_until=rows.unread_until
        )

    @verb("GET", "/upcoming", Role.VIEWER, gives=UPCOMING, operation="list_upcoming_runs")
    async def upcoming(
        self,
        within: Annotated[Duration, Meta(description="Length of the period from now on; at most `31d`")] = "1h",
        *,
        each: Annotated[int, Meta(ge=1, le=MOST_EACH, description="Most plan times to list of one schedule")] = 10,
        limit: Annotated[int, Meta(ge=1, le=MOST_LISTED, description="Maximum number of items")] = 200,
    ) -> UpcomingRuns:
        """Return what is to begin within the next hour, or another period.

        The next comes first: plan times of schedules that are not paused, runs that are delayed or wait for a retry. Of
        a schedule that fires often, the first `each` plan times are listed; `more` of the last one says how many
        follow. Runs that could begin now, and wait for a worker, a limit or other runs, are not listed.
        """
        length = period_of(within)
        rows = await self._store.monitoring.upcoming(length, limit)
        until = rows.now + length
        # In a thread: thousands of schedules may have plan times in the period.
        return await asyncio.to_thread(
            upcoming_runs, rows.now, until, rows.schedules, rows.runs, each=each, limit=limit, more=rows.more
        )
