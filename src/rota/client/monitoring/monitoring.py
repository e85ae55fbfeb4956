"""What people look at: `client.monitoring`. No question here looks through all runs."""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec

from rota.config import Config
from rota.core.monitoring.charts import Series, series_of, stretch_of
from rota.core.monitoring.overview import Overview, attention
from rota.core.monitoring.timeline import Timeline, asked_of, timeline_of
from rota.store import Store
from rota.store.monitoring.overview import OverviewFacts
from rota.values.clock import HostClock
from rota.values.durations import Duration, in_micros
from rota.values.instants import micros_at

_FRESH = 0.2  # less than a page waits until it asks again: else it would be told what it knows, and rest with it
_SLACK = 1_000_000


class MonitoringClient:
    def __init__(self, store: Store, config: Config) -> None:
        self._store = store
        self._silence = in_micros(config.lease)
        self._stuck_for = in_micros(config.lease + config.reaper) + _SLACK
        self._asking = asyncio.Lock()
        self._known: Overview | None = None
        self._fresh_until = 0.0

    async def overview(self) -> Overview:
        """How full it is, what came of the last day, what needs attention, what comes next.

        An answer serves everybody who asks within a fifth of a second.
        """
        async with self._asking:
            began = self._store.clock.monotonic()
            if self._known is None or began >= self._fresh_until:
                self._known = await self._look()
                self._fresh_until = began + _FRESH
            return self._known

    async def oldest_queued(self) -> dict[str, datetime]:
        """By queue: since when the run could be claimed that waits longest; queues where none waits are left out."""
        return await self._store.monitoring.oldest_queued()

    async def series(
        self, from_at: datetime | None = None, to_at: datetime | None = None, step: Duration | None = None
    ) -> Series:
        """What was counted in that time, in steps: the last day in steps of 15 minutes, unless told otherwise.

        A step is whole minutes; whole hours, if more than two days ago are asked for.
        """
        stretch = stretch_of(from_at, to_at, step, await self._store.now())
        rows = await self._store.monitoring.counted(stretch.span, stretch.first, stretch.to)
        return await asyncio.to_thread(series_of, stretch, rows)  # of many processes, it takes a while

    async def timeline(
        self, from_at: datetime | None = None, to_at: datetime | None = None, *, by: str = "schedule", limit: int = 500
    ) -> Timeline:
        """Attempts that went on in that time (the last hour, unless told otherwise), and plan times to come up to its
        end, in lanes by `schedule`, `job`, `worker` or `queue`.

        Of runs made no earlier than a day before; the newest attempts, `limit` of them.
        """
        asked = asked_of(from_at, to_at, by, limit, await self._store.now())
        found = await self._store.monitoring.timeline(asked)
        return await asyncio.to_thread(timeline_of, asked, found.bars, found.upcoming, more=found.more)

    async def _look(self) -> Overview:
        clock = self._store.clock
        before = clock.micros()
        seen = await self._store.monitoring.overview(self._silence, self._stuck_for)
        offset = _certain_offset(before, micros_at(seen.overview.at), clock.micros())
        return self._judged(seen, offset if isinstance(clock, HostClock) else 0)

    def _judged(self, seen: OverviewFacts, offset: int) -> Overview:
        facts = msgspec.structs.replace(seen.facts, polls=self._store.database.polls, offset=offset)
        told, count = attention(facts)
        return msgspec.structs.replace(seen.overview, attention=told, attention_count=count)


def _certain_offset(before: int, there: int, after: int) -> int:
    """Of this host's clock: the database read its own in between, so what lies there is no difference."""
    return before - there if there < before else after - there if there > after else 0
