"""`client.monitoring` over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from rota.core.calendar.notation import written_instant
from rota.core.monitoring.charts import Series
from rota.core.monitoring.overview import Overview
from rota.core.monitoring.timeline import Timeline
from rota.errors import Invalid
from rota.remote.decode import items, read, value
from rota.remote.encode import duration
from rota.remote.transport import Transport, path_of
from rota.values.durations import Duration

T = TypeVar("T")


class _Queue(msgspec.Struct):
    queue: str
    oldest_at: datetime | None = None


class RemoteMonitoring:
    """Data for dashboards: overview, charts and timeline."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def overview(self) -> Overview:
        """Return current load, results of the last day, what needs attention, and the next runs.

        The answer is cached for a fifth of a second.
        """
        return read((await self._transport.ask("GET", path_of("overview"))).body, Overview)

    async def oldest_queued(self) -> dict[str, datetime]:
        """Return, for each queue, since when its longest-waiting run has been claimable. Queues without such a run are
        left out."""
        queues = items((await self._transport.ask("GET", path_of("queues"))).body, _Queue)
        return {queue.queue: queue.oldest_at for queue in queues if queue.oldest_at is not None}

    async def series(
        self, from_at: datetime | None = None, to_at: datetime | None = None, step: Duration | None = None
    ) -> Series:
        """Return metrics over time in steps; by default the last day in steps of 15 minutes.

        A step is whole minutes, or whole hours if the range begins more than two days ago.
        """
        written = None if step is None else duration(step)
        return await self._get("series", Series, {"from": _instant(from_at), "to": _instant(to_at), "step": written})

    async def timeline(
        self, from_at: datetime | None = None, to_at: datetime | None = None, *, by: str = "schedule", limit: int = 500
    ) -> Timeline:
        """Return the attempts within a time range (by default the last hour) and the plan times up to its end, in lanes
        by `schedule`, `job`, `worker` or `queue`.

        Only runs created up to a day before the range are considered; the newest `limit` attempts are returned.
        """
        query = {"from": _instant(from_at), "to": _instant(to_at), "by": by, "limit": limit}
        return await self._get("timeline", Timeline, query)

    async def _get(self, resource: str, kind: type[T], query: Mapping[str, Any]) -> T:
        body = (await self._transport.ask("GET", path_of(resource), query)).body
        return value(read(body, dict[str, Any]), kind)


def _instant(at: datetime | None) -> str | None:
    if at is not None and at.tzinfo is None:
        raise Invalid(f"{at.isoformat()} has no zone", hint="give an aware datetime: datetime.now(UTC)")
    return None if at is None else written_instant(at)
