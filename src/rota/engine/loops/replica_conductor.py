"""Start, watch and end runs with replicas. Safe in any number of processes."""

from __future__ import annotations

from datetime import timedelta

from rota.engine.observability.meters import Meters
from rota.store import Store

_LOOK_FOR_ABSENT = 1.0


class ReplicaConductor:
    """Loop that rests until the next run is due. It is woken by hints: the end of a replica may let another begin."""

    def __init__(self, store: Store, poll: timedelta, meters: Meters | None = None) -> None:
        self._store = store
        self._meters = meters or Meters()
        self._clock = store.clock
        self._poll = poll
        self._absent_at = 0.0

    def on_error(self) -> None:
        """Do nothing: only the time of the next look for absent workers is kept between steps."""

    async def step(self) -> timedelta:
        now = self._clock.monotonic()
        absent = now >= self._absent_at
        if absent:
            self._absent_at = now + _LOOK_FOR_ABSENT
        done = await self._store.conducts.step(absent=absent)
        self._meters.ended(done.ended)
        if done.count:
            return timedelta(0)
        if done.next_in is None or done.next_in <= 0:
            return self._poll
        return min(self._poll, timedelta(microseconds=done.next_in))
