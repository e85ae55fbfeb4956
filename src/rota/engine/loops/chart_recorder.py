"""Store this process's counters and the queues' depths for charts. Safe in any number of processes."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

from rota.core.monitoring.counters import MINUTE, Rows, added, newest, since
from rota.engine.observability.meters import Meters
from rota.errors import RotaError
from rota.store import Store

_INTERVAL = timedelta(seconds=10)
_LAST_WORDS = 1.0


class ChartRecorder:
    """Loop that writes totals for the current minute and hour under a source name of its own.

    Writing totals rather than increments makes it idempotent. A process that counted nothing writes nothing.
    """

    def __init__(self, store: Store, meters: Meters, source: str, interval: timedelta = _INTERVAL) -> None:
        self._store = store
        self._meters = meters
        self._source = source
        self._interval = interval
        self._seen = meters.counted()
        self._rows: Rows = {}
        self._written: Rows = {}
        self._looked_at = store.clock.monotonic()
        self._measure_at = self._looked_at + interval.total_seconds()

    def on_error(self) -> None:
        """Do nothing: what could not be written is written with the next step."""

    async def step(self) -> timedelta:
        await self.flush()
        if self._store.clock.monotonic() >= self._measure_at:
            measuring = await self._store.monitoring.measure()
            self._measure_at = self._store.clock.monotonic() + (MINUTE - measuring.now % MINUTE) / 1_000_000
        return self._interval

    async def flush(self) -> None:
        total = self._meters.counted()
        more, steady = since(total, self._seen), self._store.clock.monotonic()
        if more:
            # The instant is fixed here, once: a repeated write must carry the same rows.
            passed = min(timedelta(seconds=max(0.0, steady - self._looked_at)), self._interval)
            at = await self._store.now() - passed // timedelta(microseconds=2)
            self._rows, self._seen = added(self._rows, more, at), total
        self._looked_at = steady
        changed = {key: counted for key, counted in self._rows.items() if self._written.get(key) != counted}
        if changed:
            await self._store.monitoring.record(self._source, changed)
            self._rows = self._written = newest(self._rows)

    async def close(self) -> None:
        """Write the last seconds at shutdown, if the database answers in time."""
        with contextlib.suppress(RotaError, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self.flush()
