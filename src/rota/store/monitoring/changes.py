"""Cheap checks for changes: of the whole database, and of runs that somebody watches."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import msgspec

from rota.core.states import RunState
from rota.store.databases.database import Database, Tx

_NEWEST = 20
_TABLES = ("newest_ids", "newest_leases", "newest_outside", "newest_conducts")


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

    async def recent(self, known: Iterable[str]) -> dict[str, RunVersion]:
        """Return the versions of `known` runs, of the newest ones, and of the newest that somebody has.

        No table says which runs changed since: nothing is written for subscribers. A run that is none of these, and
        changes twice between two polls, is not found.
        """

        async def body(tx: Tx) -> dict[str, RunVersion]:
            ids = {*known}
            for statement in _TABLES:
                ids |= {str(run_id) for (run_id,) in await tx.fetch(statement, limit=_NEWEST)}
            rows = await tx.fetch("places_of_runs", [(run_id,) for run_id in sorted(ids)]) if ids else ()
            return {str(id): RunVersion(RunState(state), _hash(state, *facts)) for id, state, *facts in rows}

        return await self._database.glance(body)

    async def runs(self, run_ids: Iterable[str]) -> dict[str, RunVersion]:
        """Return the versions of those of the runs that exist."""
        rows = [(run_id,) for run_id in run_ids]
        if not rows:
            return {}
        runs = await self._database.glance(lambda tx: tx.fetch("watched_runs", rows))
        return {str(id): RunVersion(RunState(state), _hash(state, *facts)) for id, state, *facts in runs}


def _hash(*facts: object) -> int:
    return crc32(repr(facts).encode())
