"""Prunes what retention no longer keeps. Safe in any number of processes."""

from __future__ import annotations

import logging
from datetime import timedelta

from rota.core.model import Retention
from rota.store import Store

log = logging.getLogger("rota.janitor")


class Janitor:
    def __init__(self, store: Store, interval: timedelta) -> None:
        self._store = store
        self._interval = interval

    def troubled(self) -> None:
        """Nothing is remembered between steps."""

    async def step(self) -> timedelta:
        pruned = await prune(self._store)
        if pruned:
            log.info("pruned %d runs", pruned)
        return self._interval


async def prune(store: Store) -> int:
    """By the retention that each job's stored definition declares; an unknown job's runs get the default."""
    declared = {definition.name: definition.retention for definition in await store.jobs()}
    return await store.prune(lambda job: declared.get(job, Retention()))
