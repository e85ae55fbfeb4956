"""Attempts within a period: those still going on, and those of runs whose ids are of that time; plan times that did
not run; and what begins."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from rota.core.monitoring.timeline import Asked, Bar, SkippedRun, UnrunRange, Upcoming, WaitingRun
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.core.states import RunState
from rota.store.databases.database import Row, Tx
from rota.store.databases.pinned_plans import walk_indexes
from rota.store.ledger.occurrences import snapshot
from rota.store.runs.filter import first_id_of, micros_of
from rota.store.schedules.schedule_row import readable
from rota.values.clock import Clock, HostClock
from rota.values.durations import in_micros

LOOKED_AT = 20_000
"""Runs read at most, newest first, and as many attempts that did not succeed."""
_MOST_SCHEDULES = 200
_MOST_RANGED = 5_000
"""Schedules whose ranges of missed and skipped plan times are looked up at most."""
MOST_SCHEDULES = 2_000
_BEFORE = in_micros(timedelta(days=1))
_SKEW = in_micros(timedelta(minutes=10))
"""Ids carry the time of the host that made them, which differs from the database's by at most this."""


class TimelineRows(msgspec.Struct, frozen=True):
    """Attempts, and plan times that are to come or did not run. Of runs created before `unread_until` not all were
    read."""

    bars: list[Bar]
    upcoming: list[Upcoming]
    skipped: list[SkippedRun]
    ranges: list[UnrunRange]
    unread_until: int | None


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
    rows += await tx.fetch("attempts_between", **ids, **period, looked=LOOKED_AT)
    ended = await tx.fetch("ended_between", **ids, **period, looked=LOOKED_AT)
    rows += [row[:-1] for row in ended if row[2] != RunState.SKIPPED]
    bars = [Bar(str(run_id), *facts) for run_id, *facts in rows]
    unread = [await tx.fetch(statement, **ids, looked=LOOKED_AT) for statement in ("more_runs", "more_attempts")]
    times = [micros_of(str(id)) for rows in unread for (id,) in rows]
    times += [row[4] for row in ended[query.limit :]]  # among skipped runs, others may not have been counted
    return TimelineRows(
        bars,
        await upcoming_schedules(tx, query.to_at, _MOST_SCHEDULES) if query.by.has_coming else [],
        [_skipped(row) for row in ended if row[2] == RunState.SKIPPED],
        await _ranges(tx, query),
        max(times, default=None),
    )


def _skipped(row: Row) -> SkippedRun:
    run_id, _, _, _, at, _, job, queue, schedule, reason = row
    return SkippedRun(str(run_id), at, reason, job, queue, schedule)


async def _ranges(tx: Tx, query: Asked) -> list[UnrunRange]:
    if not query.by.has_coming:
        return []
    between = {"from_at": query.from_at, "to_at": query.to_at, "limit": query.limit}
    return [UnrunRange(*row) for row in await tx.fetch("unrun_ranges", **between, schedules=_MOST_RANGED)]


def _ids_between(query: Asked, clock: Clock) -> dict[str, object]:
    if not isinstance(clock, HostClock):  # a manual clock of a test has nothing to do with ids
        return {"first": NIL_ID, "last": LAST_ID}
    return {"first": first_id_of(query.from_at - _BEFORE), "last": first_id_of(query.to_at + _SKEW)}


async def upcoming_schedules(tx: Tx, to_at: int, limit: int) -> list[Upcoming]:
    """Return the schedules that have plan times up to `to_at`, the next first."""
    rows = await tx.fetch("upcoming_schedules", to_at=to_at, limit=limit)
    schedules = [(name, job, readable(text), next_plan, fired) for name, job, text, next_plan, fired in rows]
    return [
        Upcoming(name, job, definition, next_plan, fired)
        for name, job, definition, next_plan, fired in schedules
        if definition is not None
    ]


class UpcomingRows(msgspec.Struct, frozen=True):
    """Facts as of `now`. `more`: there are schedules or runs that were not read."""

    now: int
    schedules: list[Upcoming]
    runs: list[WaitingRun]
    more: bool


async def read_upcoming(tx: Tx, length: int, limit: int) -> UpcomingRows:
    """Read what is to begin within `length` microseconds: at most `limit` runs."""
    await snapshot(tx)
    await walk_indexes(tx)  # pinned plans: each branch has an index in its order; only what is listed is sorted
    ((now,),) = await tx.fetch("now")
    schedules = await upcoming_schedules(tx, int(now) + length, MOST_SCHEDULES + 1)
    rows = await tx.fetch("upcoming_runs", to_at=int(now) + length, limit=limit + 1)
    runs = [WaitingRun(at, str(run_id), attempt, job, queue, name) for at, run_id, attempt, job, queue, name in rows]
    more = len(schedules) > MOST_SCHEDULES or len(runs) > limit
    return UpcomingRows(int(now), schedules[:MOST_SCHEDULES], runs[:limit], more)
