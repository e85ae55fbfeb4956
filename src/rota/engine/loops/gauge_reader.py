"""Read gauges from the database, cached for two seconds and limited in time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from rota.core.monitoring.gauges import Gauges
from rota.errors import RotaError
from rota.store import Store
from rota.values.durations import in_micros

_FRESH = 2.0
_PATIENCE = 3.0


class GaugeReader:
    """Cache of the last answer. `read` returns None when the database did not answer in time."""

    def __init__(self, store: Store, lease: timedelta) -> None:
        self._store = store
        self._silence = in_micros(lease)
        self._known: tuple[float, Gauges] | None = None

    async def read(self) -> Gauges | None:
        now = self._store.clock.monotonic()
        if self._known is not None and now - self._known[0] < _FRESH:
            return self._known[1]
        try:
            async with asyncio.timeout(_PATIENCE):
                levels = await self._store.levels(self._silence)
        except (RotaError, TimeoutError):
            return None
        self._known = now, levels
        return levels
