"""Read gauges from the database, cached for two seconds and limited in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import msgspec

from rota.core.monitoring.counters import Gauges
from rota.errors import RotaError
from rota.store import Store
from rota.values.durations import in_micros

_FRESH = 2.0
_PATIENCE = 3.0


class GaugeReader:
    """Cache of the last answer. `read` returns None when the database did not answer in time."""

    def __init__(self, store: Store, lease: timedelta, attention: Callable[[], Awaitable[Mapping[str, int]]]) -> None:
        self._store = store
        self._attention = attention
        self._silence = in_micros(lease)
        self._known: tuple[float, Gauges] | None = None

    async def read(self) -> Gauges | None:
        now = self._store.clock.monotonic()
        if self._known is not None and now - self._known[0] < _FRESH:
            return self._known[1]
        try:
            async with asyncio.timeout(_PATIENCE):
                levels = await self._store.levels(self._silence)
                levels = msgspec.structs.replace(levels, attention=await self._attention())
        except (RotaError, TimeoutError):
            return None
        self._known = now, levels
        return levels
