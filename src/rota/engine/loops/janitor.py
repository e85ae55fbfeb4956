"""Delete what retention no longer keeps. Safe in any number of processes."""

from __future__ import annotations

import logging
from datetime import timedelta

from rota.core.jobs.job import Retention
from rota.engine.observability.meters import Meters
from rota.errors import RotaError
from rota.store import Store

log = logging.getLogger("rota.janitor")

_BETWEEN_THOROUGH = 3_600.0


class Janitor:
    """Loop that prunes at every interval, and thoroughly once an hour."""

    def __init__(self, store: Store, interval: timedelta, meters: Meters | None = None) -> None:
        self._store = store
        self._meters = meters or Meters()
        self._interval = interval
        self._thorough_at = 0.0

    def on_error(self) -> None:
        """Do nothing: no state between steps could be wrong now."""

    async def step(self) -> timedelta:
        if await self._store.standing.is_held():  # a copy keeps what it was made for
            return self._interval
        now = self._store.clock.monotonic()
        thorough = now >= self._thorough_at
        if thorough:  # set before pruning, so that a failing thorough pass is not repeated in every step
            self._thorough_at = now + _BETWEEN_THOROUGH
        try:
            pruned = await prune(self._store, thorough=thorough)
        except RotaError as error:
            log.warning("not everything was pruned: %s", error)
            return self._interval
        self._meters.pruned.add(pruned)
        if pruned:
            log.info("pruned %d runs", pruned)
        return self._interval


async def prune(store: Store, *, thorough: bool = True) -> int:
    """Delete runs by the retention of each job's stored definition. Runs of unknown jobs get the default."""
    declared = {definition.name: definition.retention for definition in await store.jobs()}
    return await store.prune(lambda job: declared.get(job, Retention()), thorough=thorough)
