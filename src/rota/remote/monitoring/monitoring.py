"""`client.monitoring` of a server."""

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
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def overview(self) -> Overview:
        """How full it is, what came of the last day, what needs attention, what comes next.

        An answer serves everybody who asks within a second and a half.
        """
        return read((await self._transport.ask("GET", path_of("overview"))).body, Overview)

    async def oldest_queued(self) -> dict[str, datetime]:
        """By queue: since when the run could be claimed that waits longest; queues where none waits are left out."""
        found = items((await self._transport.ask("GET", path_of("queues"))).body, _Queue)
        return {one.queue: one.oldest_at for one in found if one.oldest_at is not None}

    async def series(
        self, from_at: datetime | None = None, to_at: datetime | None = None, step: Duration | None = None
    ) -> Series:
        """What was counted in that time, in steps: the last day in steps of 15 minutes, unless told otherwise.

        A step is whole minutes; whole hours, if more than two days ago are asked for.
        """
        written = None if step is None else duration(step)
        return await self._asked("series", Series, {"from": spoken(from_at), "to": spoken(to_at), "step": written})

    async def timeline(
        self, from_at: datetime | None = None, to_at: datetime | None = None, *, by: str = "schedule", limit: int = 500
    ) -> Timeline:
        """Attempts that went on in that time (the last hour, unless told otherwise), and plan times to come up to its
        end, in lanes by `schedule`, `job`, `worker` or `queue`.

        Of runs made no earlier than a day before; the newest attempts, `limit` of them.
        """
        query = {"from": spoken(from_at), "to": spoken(to_at), "by": by, "limit": limit}
        return await self._asked("timeline", Timeline, query)

    async def _asked(self, what: str, kind: type[T], query: Mapping[str, Any]) -> T:
        body = (await self._transport.ask("GET", path_of(what), query)).body
        return value(read(body, dict[str, Any]), kind)


def spoken(at: datetime | None) -> str | None:
    if at is not None and at.tzinfo is None:
        raise Invalid(f"{at.isoformat()} has no zone", hint="give an aware datetime: datetime.now(UTC)")
    return None if at is None else written_instant(at)
