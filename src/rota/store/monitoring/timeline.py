"""Attempts within a period: those still going on, and those of runs whose ids are of that time."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from rota.core.monitoring.timeline import Asked, Bar, Upcoming
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.store.databases.database import Row, Tx
from rota.store.databases.pinned_plans import walk_indexes
from rota.store.ledger.occurrences import snapshot
from rota.store.runs.filter import first_id_of
from rota.store.schedules.schedule_row import readable
from rota.values.clock import Clock, HostClock
from rota.values.durations import in_micros

LOOKED_AT = 20_000
"""Runs read at most, newest first, and as many attempts that did not succeed."""
_MOST_SCHEDULES = 200
_BEFORE = in_micros(timedelta(days=1))
_SKEW = in_micros(timedelta(minutes=10))
"""Ids carry the time of the host that made them, which differs from the database's by at most this."""


class TimelineRows(msgspec.Struct, frozen=True):
    """Attempts and upcoming plan times. `more`: there are older runs that were not read."""

    bars: list[Bar]
    upcoming: list[Upcoming]
    more: bool


async def found(tx: Tx, asked: Asked, clock: Clock) -> TimelineRows:
    await snapshot(tx)
    await walk_indexes(tx, in_order=True)
    between = _between(asked, clock)
    wanted = {
        "from_at": asked.from_at,
        "to_at": asked.to_at,
        "scheduled": int(asked.by == "schedule"),
        "limit": asked.limit + 1,
    }
    rows = [*await tx.fetch("attempts_going_on", **wanted)]
    rows += await tx.fetch("succeeded_between", **between, **wanted, looked=LOOKED_AT)
    rows += await tx.fetch("attempts_between", **between, **wanted, looked=LOOKED_AT)
    more = [await tx.fetch(one, **between, looked=LOOKED_AT) for one in ("more_runs", "more_attempts")]
    return TimelineRows([_bar(row) for row in rows], await _upcoming(tx, asked), any(more))


def _between(asked: Asked, clock: Clock) -> dict[str, object]:
    if not isinstance(clock, HostClock):  # a clock moved by hand has nothing to do with ids
        return {"first": NIL_ID, "last": LAST_ID}
    return {"first": first_id_of(asked.from_at - _BEFORE), "last": first_id_of(asked.to_at + _SKEW)}


def _bar(row: Row) -> Bar:
    return Bar(str(row[0]), *row[1:])


async def _upcoming(tx: Tx, asked: Asked) -> list[Upcoming]:
    if asked.by not in ("schedule", "job"):
        return []
    rows = await tx.fetch("upcoming_schedules", to_at=asked.to_at, limit=_MOST_SCHEDULES)
    read = [(name, job, readable(text), next_plan, fired) for name, job, text, next_plan, fired in rows]
    return [Upcoming(name, job, definition, *plan) for name, job, definition, *plan in read if definition is not None]
