"""Reader of the overview and of what needs attention, for everybody who shows either."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from rota.config import Config
from rota.core.monitoring.attention import Judged, first_of_each, judge
from rota.core.monitoring.attention_facts import Facts
from rota.core.monitoring.attention_rules import items_of
from rota.core.monitoring.overview import Overview
from rota.values.durations import in_micros

if TYPE_CHECKING:
    from rota.store import Store

# Shorter than the pause after which a page asks again; otherwise the page would get the answer it already has and then
# stop asking, although something has changed.
_FRESH = 0.2
_SLACK = 1_000_000


class Seen(msgspec.Struct, frozen=True):
    """The overview, and all that needs attention, at a time of the database."""

    overview: Overview
    judged: Judged
    now: int


class OverviewReader:
    """Cache of the last answer. One query serves all callers that arrive while it runs."""

    def __init__(self, store: Store, config: Config) -> None:
        self._store = store
        self._silence = in_micros(config.lease)
        self._stuck_for = in_micros(config.lease + config.reaper) + _SLACK
        self._reading = asyncio.Lock()
        self._cached: Seen | None = None
        self._fresh_until = 0.0

    async def read(self) -> Seen:
        async with self._reading:
            began = self._store.clock.monotonic()
            if self._cached is None or began >= self._fresh_until:
                found = await self._store.monitoring.overview(self._silence, self._stuck_for)
                self._cached = seen(found.overview, found.facts)
                self._fresh_until = began + _FRESH
            return self._cached

    async def counts(self) -> Mapping[str, int]:
        """Return the numbers of open items by kind."""
        return (await self.read()).overview.attention_counts

    def forget(self) -> None:
        """Read anew at the next call."""
        self._fresh_until = 0.0


def seen(overview: Overview, facts: Facts) -> Seen:
    """Add what needs attention to the overview."""
    judged = judge(items_of(facts), facts.snoozes, facts.symptoms.now)
    shown = msgspec.structs.replace(
        overview,
        attention=first_of_each(judged.open),
        attention_count=len(judged.open),
        attention_counts=judged.counts,
        snoozed=len(judged.snoozed),
    )
    return Seen(shown, judged, facts.symptoms.now)
