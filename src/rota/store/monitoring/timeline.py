"""Attempts within a period: those still going on, and those of runs whose ids are of that time."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from rota.core.monitoring.timeline import Asked, Bar, Upcoming
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.store.databases.database import Tx
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


async def read(tx: Tx, query: Asked, clock: Clock) -> TimelineRows:
    await snapshot(tx)
    await walk_indexes(tx, in_order=True)  # pinned plans: each statement has an index in its order
    ids = _ids_between(query, clock)
    period = {
        "from_at": query.from_at,
        "to_at": query.to_at,
        "scheduled": int(query.by.only_scheduled),
        "limit": query.limit + 1,
    }
    # All three select the fields of `Bar`, in their order.
    rows = [*await tx.fetch("attempts_going_on", **period)]
    rows += await tx.fetch("succeeded_between", **ids, **period, looked=LOOKED_AT)
    rows += await tx.fetch("attempts_between", **ids, **period, looked=LOOKED_AT)
    bars = [Bar(str(run_id), *facts) for run_id, *facts in rows]
    more = [await tx.fetch(statement, **ids, looked=LOOKED_AT) for statement in ("more_runs", "more_attempts")]
    return TimelineRows(bars, await _upcoming(tx, query), any(more))


def _ids_between(query: Asked, clock: Clock) -> dict[str, object]:
    if not isinstance(clock, HostClock):  # a manual clock of a test has nothing to do with ids
        return {"first": NIL_ID, "last": LAST_ID}
    return {"first": first_id_of(query.from_at - _BEFORE), "last": first_id_of(query.to_at + _SKEW)}


async def _upcoming(tx: Tx, query: Asked) -> list[Upcoming]:
    if not query.by.has_coming:
        return []
    rows = await tx.fetch("upcoming_schedules", to_at=query.to_at, limit=_MOST_SCHEDULES)
    schedules = [(name, job, readable(text), next_plan, fired) for name, job, text, next_plan, fired in rows]
    return [
        Upcoming(name, job, definition, next_plan, fired)
        for name, job, definition, next_plan, fired in schedules
        if definition is not None
    ]
