"""Take expired leases from their holders and tidy up forgotten state. Safe in any number of processes."""

from __future__ import annotations

import logging
from datetime import timedelta

from rota.engine.observability.meters import Meters
from rota.store import Store

log = logging.getLogger("rota.reaper")

_BATCH = 500
_SKEW = 2.0  # seconds by which the wall clock and the monotonic clock may disagree between two steps


class Reaper:
    """Reaper that is cautious after a gap in its own knowledge.

    When it has just started, lost the database, or was suspended itself, the lease holders may have been cut off in the
    same way. It first waits one heartbeat, so that they can renew. Otherwise an outage longer than a lease would run
    every active run again.
    """

    def __init__(self, store: Store, interval: timedelta, heartbeat: timedelta, meters: Meters | None = None) -> None:
        self._store = store
        self._clock = store.clock
        self._interval = interval
        self._meters = meters or Meters()
        self._caution = heartbeat + min(heartbeat, timedelta(seconds=1))
        self._seen: tuple[int, float] | None = None
        self._wait_until: float | None = None
        self.taken = 0

    def on_error(self) -> None:
        self._seen = None

    async def step(self) -> timedelta:
        wall, steady = await self._store.now(), self._clock.monotonic()
        self._meters.learn_time(wall, steady)
        # Two clocks, because either may lie: the database's wall clock can jump, and the monotonic clock of a suspended
        # host may stand still.
        if self._knows_nothing(wall, steady) or (self._wait_until is None and self._slept(steady)):
            self._wait_until = steady + self._caution.total_seconds()
        self._seen = (wall, steady)
        if self._wait_until is not None:
            remaining = self._wait_until - steady
            if remaining > 0:
                return min(self._interval, timedelta(seconds=remaining))
            self._wait_until = None
        return await self._reap()

    def _knows_nothing(self, wall: int, steady: float) -> bool:
        """Return whether this is the first step after a start or an error, or whether the database's clock jumped."""
        if self._seen is None:
            return True
        wall_passed, steady_passed = (wall - self._seen[0]) / 1_000_000, steady - self._seen[1]
        return abs(wall_passed - steady_passed) > _SKEW

    def _slept(self, steady: float) -> bool:
        """Return whether this process was suspended since the last step.

        It is not asked while the reaper waits already: a process that is always late would never reap.
        """
        return self._seen is not None and steady - self._seen[1] > 2 * self._interval.total_seconds() + _SKEW

    async def _reap(self) -> timedelta:
        reaped = await self._store.reap(_BATCH)
        await self._store.tidy()
        count = reaped.requeued + reaped.ended
        self.taken += count
        self._meters.reaped(reaped)
        if count:
            leases = "1 lease" if count == 1 else f"{count} leases"
            log.warning(
                "reclaimed %s: %d queued again, %d ended",
                *(leases, reaped.requeued, reaped.ended),
                extra={"requeued": reaped.requeued, "ended": reaped.ended},
            )
        return timedelta(0) if count >= _BATCH else self._interval
