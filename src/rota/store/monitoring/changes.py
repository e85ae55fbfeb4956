"""Cheap checks for changes: of the whole database, and of runs that somebody watches."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import msgspec

from rota.core.states import RunState
from rota.store.databases.database import Database


class RunVersion(msgspec.Struct, frozen=True):
    """A run's state, and a hash that differs whenever the run changed, progressed or logged something."""

    state: RunState
    version: int


class Watch:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark(self) -> object:
        """Return a value that differs after every commit by any process. Cheap, because it is polled all day."""
        version = self._database.version()
        if version is not None:
            return version
        ((mark,),) = await self._database.glance(lambda tx: tx.fetch("change_mark"))
        return mark

    async def runs(self, run_ids: Iterable[str]) -> dict[str, RunVersion]:
        """Return the versions of those of the runs that exist."""
        rows = [(run_id,) for run_id in run_ids]
        if not rows:
            return {}
        runs = await self._database.glance(lambda tx: tx.fetch("watched_runs", rows))
        return {
            str(id): RunVersion(RunState(state), crc32(repr((state, *facts)).encode())) for id, state, *facts in runs
        }
