"""Facts of attention besides live rows, from narrow tables and statistics, each with a limit; and snoozes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from rota.core.alerts.signals import FAILED, OWN_JOBS
from rota.core.ledger.database_state import DatabaseStanding
from rota.core.monitoring.attention import SHOWN, Snooze
from rota.core.monitoring.attention_facts import (
    Delivery,
    FailingJob,
    FailingLane,
    GoneWorker,
    LongRun,
    MissedTimes,
    PausedSchedule,
    ProgramVersion,
    QueueDepth,
    SkippedTimes,
    StarvedLimit,
)
from rota.core.monitoring.attention_rules import DAY, ENOUGH, HOUR, LAST_RUNS, MINUTE, SLOW_FROM, STARVED
from rota.core.monitoring.counters import Counted
from rota.core.monitoring.statistics import Tally, day_of, merged, percentile
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.core.states import RunState
from rota.errors import BadTrigger
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.store.ledger.database_state import read_standing
from rota.store.runs.filter import first_id_of
from rota.store.schedules.schedule_row import readable
from rota.values.clock import Clock, HostClock
from rota.values.instants import micros_at

LISTED = 100
_DAYS = 8
_MOST_JOBS = 50
_MOST_FAILING_JOBS = 5
_MOST_FAULTS = 1_000
_MOST_FAILURES = 300
_BESIDE = 10
"""Runs of a lane that are read besides those that failed in a row: it may have skipped some since."""
_MOST_LIMITED = 10_000
_MOST_LOST = 1_000
_WALK = 200
_GROWTH = 30 * MINUTE
_DELIVERIES = 20
_MOST_SNOOZES = 1_000
_NOTED = "attention"


async def read(tx: Tx, now: int, silence: int, clock: Clock) -> dict[str, Any]:
    """Return fields of `Facts`. The caller has begun a snapshot. `silence`: how long a living worker may be silent."""
    long_rows = await tx.fetch("long_runs", long=SLOW_FROM, limit=LISTED)
    faults = await _recent_faults(tx, now, clock)
    week = await _week_of(tx, now, [*(row[1] for row in long_rows), *faults])
    skipped = await tx.fetch("skipped_since", **_ids(now - DAY, now, clock), limit=_MOST_FAULTS)
    return {
        "failing": await _failing(tx),
        "missed": [
            MissedTimes(name, reason, first, last, int(count))
            for name, reason, first, last, count in await tx.fetch("missed_since", since=now - DAY, limit=_MOST_FAULTS)
        ],
        "skipped": [_skipped(row, now) for row in skipped],
        "gone": await _gone(tx, silence),
        "long_runs": [_long_run(row, week) for row in long_rows],
        "failing_jobs": [await _failing_job(tx, job, since, week) for job, since in faults.items()],
        "depths": await _depths(tx, now),
        "limits": [
            StarvedLimit(key, int(runs), oldest)
            for key, runs, oldest in await tx.fetch("starved_limits", most=_MOST_LIMITED, long=STARVED, limit=LISTED)
        ],
        "paused_schedules": [
            PausedSchedule(*row) for row in await tx.fetch("schedules_paused_before", long=DAY, limit=LISTED)
        ],
        "versions": [
            ProgramVersion(version, schema, int(count))
            for version, schema, count in await tx.fetch("program_versions", silence=silence)
        ],
        "deliveries": await _deliveries(tx),
        "standing": await _standing(tx, now, clock),
    }  # fmt: skip


async def _standing(tx: Tx, now: int, clock: Clock) -> DatabaseStanding | None:
    """Return the standing of the database, unless there is nothing to say of it: no run is older than its epoch, so
    that none could be lost."""
    standing = await read_standing(tx)
    if standing.held:
        return standing
    if not standing.epoch or standing.since is None:
        return None
    older = await tx.fetch("any_run_before", first=_ids(micros_at(standing.since), now, clock)["first"])
    return standing if older else None


def _ids(since: int, until: int, clock: Clock) -> dict[str, str]:
    if not isinstance(clock, HostClock):  # a manual clock of a test has nothing to do with ids
        return {"first": NIL_ID, "last": LAST_ID}
    return {"first": first_id_of(since), "last": first_id_of(until + HOUR)}


async def _failing(tx: Tx) -> list[FailingLane]:
    """Return lanes that fail in a row; those that are shown with their error, and since when as far as it is near."""
    lanes = await tx.fetch("failing_lanes", limit=LISTED)
    keys = [(str(id), kind, scope) for id, _, kind, scope, *_ in lanes[:SHOWN]]
    walk = min(_MOST_FAILURES, max((int(row[4]) for row in lanes[:SHOWN]), default=0) + _BESIDE)
    rows = await tx.fetch("failures_of_lanes", keys, walk=walk) if keys else ()
    of = {(str(id), kind, scope): (error, since) for id, kind, scope, error, since in rows}
    failing = []
    for id, name, kind, scope, failures, last_at in lanes:
        error, since = of.get((str(id), kind, scope), (None, None))
        since = last_at if since is None else min(since, last_at)
        failing.append(FailingLane(name, kind, scope, failures, since, _error(error) if error else None))
    return failing


def _skipped(row: Row, now: int) -> SkippedTimes:
    name, text, reason, first, last, count = row
    definition, due = readable(text), None
    if definition is not None:
        try:
            due = definition.times(name).count(now - DAY, now) * len(definition.lanes)
        except BadTrigger:  # a zone unknown here
            due = None
    return SkippedTimes(name, reason, first, last, int(count), due or None)


async def _gone(tx: Tx, silence: int) -> list[GoneWorker]:
    workers = await tx.fetch("gone_workers", silence=silence, limit=LISTED)
    if not workers:
        return []
    ids = [(id,) for id, _ in workers]
    held: dict[str, list[str]] = {}
    for worker_id, run_id in await tx.fetch("leases_of_gone", ids, limit=_MOST_LOST):
        held.setdefault(worker_id, []).append(str(run_id))
    lost: dict[str, list[str]] = {}
    for worker_id, details in await tx.fetch("losses_of_workers", ids, limit=_MOST_LOST):
        lost.setdefault(worker_id, []).extend(msgspec.json.decode(details)["runs"] if details else [])
    return [GoneWorker(id, seen_at, held.get(id, ()), lost.get(id, ())) for id, seen_at in workers]


async def _recent_faults(tx: Tx, now: int, clock: Clock) -> dict[str, int]:
    """Return the jobs of which most runs failed within an hour, as far as they can be many, and since when."""
    rows = await tx.fetch("newest_faults", **_ids(now - HOUR, now, clock), most=_MOST_FAULTS)
    since: dict[str, int] = {}
    counts: dict[str, int] = {}
    for _, _, job, _, at in rows:
        since[job] = min(at, since.get(job, at))
        counts[job] = counts.get(job, 0) + 1
    worst = sorted(counts, key=lambda job: (-counts[job], job))[:_MOST_FAILING_JOBS]
    return {job: since[job] for job in worst if counts[job] >= ENOUGH / 4}


async def _week_of(tx: Tx, now: int, jobs: Iterable[str]) -> dict[str, Tally]:
    """Return the tallies of these jobs' last week. They are counted about half an hour late."""
    today, names = day_of(now), [*dict.fromkeys(jobs)][:_MOST_JOBS]
    if not names:
        return {}
    parts: dict[str, list[Tally]] = {}
    days = [(job, day) for job in names for day in range(today - _DAYS + 1, today + 1)]
    for job, text in await tx.fetch("stats_of_week", days):
        parts.setdefault(job, []).append(msgspec.json.decode(text, type=Tally))
    return {job: merged(tallies) for job, tallies in parts.items()}


def _long_run(row: Row, week: dict[str, Tally]) -> LongRun:
    run_id, job, scope_kind, scope_id, worker_id, began = row
    tally = week.get(job, Tally())
    p95 = percentile(tally.durations, 0.95) or 0.0
    return LongRun(str(run_id), job, scope_kind, scope_id, worker_id, began, p95, tally.timed)


async def _failing_job(tx: Tx, job: str, since: int, week: dict[str, Tally]) -> FailingJob:
    ends = await tx.fetch("last_ends_of_job", job=job, below=LAST_ID, walk=_WALK, count=LAST_RUNS)
    failed, states = sum(state in FAILED for _, state, _ in ends), week.get(job, Tally()).states
    week_failed = sum(states.get(state, 0) for state in FAILED)
    return FailingJob(job, failed, len(ends), week_failed, week_failed + states.get(RunState.SUCCEEDED.value, 0), since)


async def _depths(tx: Tx, now: int) -> list[QueueDepth]:
    rows = await tx.fetch("queue_depths", since=now - _GROWTH, limit=LISTED)
    return [
        QueueDepth(queue, at, queued)
        for at, text in rows
        for queue, (queued, _, _) in msgspec.json.decode(text, type=Counted).levels.items()
    ]


async def _deliveries(tx: Tx) -> list[Delivery]:
    deliveries = []
    for job in OWN_JOBS:
        for run_id, tags, at, state, error in await tx.fetch("newest_deliveries", job=job, limit=_DELIVERIES):
            names: Sequence[str] = msgspec.json.decode(tags, type=list[str]) if tags else ()
            reason = _error(error) if state != RunState.SUCCEEDED and error else None
            deliveries += [Delivery(name, str(run_id), at, state == RunState.SUCCEEDED, reason) for name in names[:1]]
    return deliveries


def _error(text: str) -> str:
    error = msgspec.json.decode(text)
    return ": ".join(part for part in (error.get("type"), error.get("message")) if part)[:300]


async def snoozes(tx: Tx) -> list[Snooze]:
    rows = await tx.fetch("snoozes", limit=_MOST_SNOOZES)
    return [Snooze(kind, subject, until, int(weight), by, reason) for kind, subject, until, weight, by, reason in rows]


class SnoozeStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, snooze: Snooze) -> None:
        """Snooze an item, in place of an earlier snooze; those that are over are forgotten."""

        async def body(tx: Tx) -> None:
            await tx.fetch("drop_old_snoozes")
            await tx.fetch(
                "save_snooze",
                kind=snooze.kind,
                subject=snooze.subject,
                until=snooze.until,
                weight=snooze.weight,
                actor=snooze.by,
                reason=snooze.reason,
            )
            details = {"item": snooze.kind, "until": snooze.until, "reason": snooze.reason}
            await audit.note(tx, _NOTED, snooze.subject or snooze.kind, "snoozed", snooze.by, details)

        await self._database.transact(body)

    async def delete(self, kind: str, subject: str, actor: str | None) -> bool:
        """End a snooze; return whether there was one."""

        async def body(tx: Tx) -> bool:
            if not await tx.fetch("drop_snooze", kind=kind, subject=subject):
                return False
            await audit.note(tx, _NOTED, subject or kind, "unsnoozed", actor, {"item": kind})
            return True

        return await self._database.transact(body)
