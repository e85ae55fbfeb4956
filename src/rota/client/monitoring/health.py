"""Verbs about the state of the process and its database; part of `Client`."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING

from rota.values.instants import instant
from rota.verbs.verb import verb
from rota.verbs.wire import answer_field

if TYPE_CHECKING:
    from rota.store import Store

_NOW = answer_field("now", datetime, "Now", "The database's time")


class HealthVerbs:
    """Verbs about the state of the process and its database."""

    store: Store

    @verb("GET", "/time", None, answer=_NOW, gives={"now": "2026-01-31T08:00:00Z"}, operation="get_time")
    async def time(self) -> datetime:
        """Return the database's current time."""
        return instant(await self.store.now())

    @abstractmethod
    async def metrics(self) -> str:
        """Return the process's counters and the database's gauges in Prometheus format.

        A database outage is reported as a metric.
        """

    async def check_ready(self) -> None:
        """Raise unless the database answers and its schema fits this version."""
        await self.store.require_schema()

    async def prune(self) -> int:
        """Delete runs past their job's retention; return how many."""
        raise NotImplementedError
