"""Looks at the database from outside during a chaos test: who holds what at one instant, and how runs have ended."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from rota.errors import RotaError
from rota.store import Database, open_database
from tests.chaos.jobs import NARROW, ONE_AT_A_TIME
from tests.simulation.world.observer import Finding

_EVERY = 0.4
_OVERLAP = 30_000_000
"""Microseconds: what ended so long before the last look is committed."""

_HELD = """
select r.job, r.payload, s.name, r.scope_id from rota_lease l join rota_run r on r.id = l.run_id
left join rota_schedule s on s.id = r.schedule_id
"""
_ENDED = """
select id, state, fence, attempt, finished_at, result from rota_run
where state is not null and coalesce(finished_at, created_at) > :since
"""


class Glimpse(msgspec.Struct, frozen=True):
    """How a run had ended when it was first seen so; `at`: when that was, at the latest, by the monotonic clock."""

    run_id: str
    end: tuple[Any, ...]
    at: float = 0.0


class Watcher:
    """One statement sees one instant: no tolerance is needed to say that two held what one may hold."""

    def __init__(self, url: str) -> None:
        self.looks = 0
        self.in_vain = 0
        self.findings: list[Finding] = []
        self.ended: dict[str, Glimpse] = {}
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()), name="watcher", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    async def _watch(self) -> None:
        database = open_database(self._url, deadline=timedelta(seconds=2))
        since = 0
        try:
            while not self._over.is_set():
                try:
                    since = await self._look(database, since)
                    self.looks += 1
                except RotaError:
                    self.in_vain += 1
                await asyncio.sleep(_EVERY)
        finally:
            await database.close()

    async def _look(self, database: Database, since: int) -> int:
        async def body(tx: Any) -> tuple[Sequence[Any], Sequence[Any], int]:
            ((now,),) = await tx.fetch("now")
            return await tx.fetch_sql(_HELD), await tx.fetch_sql(_ENDED, since=since), int(now)

        held, ended, now = await database.read(body)
        self.findings += [("P6", f"{words} at {time.monotonic():.3f}") for words in crowded(held)]
        for id, *end in ended:
            self.ended.setdefault(str(id), Glimpse(str(id), tuple(end), time.monotonic()))
        return now - _OVERLAP


def crowded(held: Sequence[Any]) -> list[str]:
    """Whatever has more holders at once than its limit allows; each is (job, payload, schedule, scope)."""
    count: Counter[tuple[str, int]] = Counter()
    for job, payload, schedule, scope in held:
        if job == "narrow":
            count["the runs of narrow", NARROW] += 1
        elif job == "keyed":
            count[f"lane {msgspec.json.decode(payload)['lane']} of keyed", 1] += 1
        elif schedule in ONE_AT_A_TIME:
            count[f"schedule {schedule} for {scope}", 1] += 1
    return [f"{held} of {limit} hold {what}" for (what, limit), held in count.items() if held > limit]
