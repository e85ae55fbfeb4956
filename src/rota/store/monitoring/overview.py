"""Facts of the overview page: read from live rows and counters, never from all runs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.calendar.describe import describe
from rota.core.monitoring.attention_facts import Backlog, Facts, OpenBreach
from rota.core.monitoring.attention_rules import LATE, backlogs
from rota.core.monitoring.counters import HOUR, Counted, last_day
from rota.core.monitoring.doctor import OperatorPause, OverdueSchedule, StuckRun, Symptoms
from rota.core.monitoring.overview import Late, Live, NextRun, Overview, WorkerCounts
from rota.core.schedules.plan_times import zone_of
from rota.errors import BadTrigger, UnreadableSchedule
from rota.store.databases.database import Tx
from rota.store.databases.pinned_plans import walk_indexes
from rota.store.ledger.explain import live_workers
from rota.store.ledger.occurrences import snapshot
from rota.store.monitoring import attention
from rota.store.monitoring.attention import snoozes
from rota.store.monitoring.gauges import schedule_states
from rota.store.schedules.schedule_row import decoded
from rota.values.clock import Clock
from rota.values.instants import instant, maybe_instant

MOST = 50_000
"""Runs counted at most, per kind of waiting."""
_LISTED = 100
_FIRES = 10
_UNTOLD = 60_000_000
_DAY = 24 * HOUR


class OverviewFacts(msgspec.Struct, frozen=True):
    """The overview without what needs attention, and the facts from which that is derived."""

    overview: Overview
    facts: Facts


async def read(tx: Tx, silence: int, stuck_for: int, clock: Clock) -> OverviewFacts:
    """Read the overview.

    `silence`: how long a living worker may be silent. `stuck_for`: how long ago a lease must have expired. Both are
    microseconds.
    """
    await snapshot(tx)
    ((now,),) = await tx.fetch("now")
    schedules = await schedule_states(tx)
    backlog = [_backlog(*row) for row in await tx.fetch("backlog", late=LATE, most=MOST)]
    await walk_indexes(tx, in_order=True)  # pinned plans: the backlog sorts many rows, all that follows returns few
    ((busy, running, waiting, cancelling),) = await tx.fetch("count_begun", most=MOST)
    ((scheduled,),) = await tx.fetch("count_scheduled", most=MOST)
    ((alive, stale, slots, _),) = await tx.fetch("worker_levels", silence=silence)
    ((overdue,),) = await tx.fetch("count_overdue", late=LATE, most=MOST)
    queued = sum(part.runs for part in backlog)
    overview = Overview(
        at=instant(int(now)),
        live=Live(
            running=int(running),
            cancelling=int(cancelling),
            queued=queued,
            scheduled=int(scheduled),
            waiting=int(waiting),
            oldest_queued_at=maybe_instant(min((part.oldest for part in backlog), default=None)),
            capped=max(queued, int(scheduled)) >= MOST,
        ),
        late=Late(sum(part.late for part in backlog), int(overdue)),
        last_day=last_day(await _counted(tx, int(now))),
        workers=WorkerCounts(int(alive), int(stale), int(slots), int(busy)),
        schedules=schedules,
        next_fires=await _next_fires(tx),
    )
    symptoms = await _symptoms(tx, int(now), backlog, silence, stuck_for)
    lingering = await tx.fetch("lingering_runs", late=stuck_for, limit=_LISTED)
    facts = Facts(
        symptoms=symptoms,
        backlog=backlog,
        held=[OperatorPause(*row) for row in await tx.fetch("all_pauses", limit=_LISTED)],
        lingering=[StuckRun(str(id), worker_id, cancel_at) for id, worker_id, cancel_at in lingering],
        breaches=[_breach(*row) for row in await tx.fetch("newest_breaches", limit=_LISTED)],
        snoozes=await snoozes(tx),
        **await attention.read(tx, int(now), silence, clock),
    )
    return OverviewFacts(overview, facts)


def _backlog(queue: str, job: str, runs: int, oldest: int, late: int) -> Backlog:
    return Backlog(queue, job, int(runs), int(oldest), int(late))


async def _counted(tx: Tx, now: int) -> list[Counted]:
    since = now - _DAY
    rows = await tx.fetch("counted_last_day", since=since, whole=-(-since // HOUR) * HOUR)
    return [msgspec.json.decode(text, type=Counted) for (text,) in rows]


async def _next_fires(tx: Tx) -> list[NextRun]:
    fires = []
    for name, job, text, next_plan in await tx.fetch("next_fires", late=LATE, limit=_FIRES):
        try:
            definition = decoded(text)
            rule, zone = describe(definition.rule, name), zone_of(definition)
        except (BadTrigger, UnreadableSchedule):  # written by a newer rota; the others are shown
            continue
        fires.append(NextRun(schedule=name, job=job, at=instant(next_plan), zone=zone, rule=rule))
    return fires


async def _symptoms(tx: Tx, now: int, backlog: Sequence[Backlog], silence: int, stuck_for: int) -> Symptoms:
    ((signals,),) = await tx.fetch("untold_signals", late=_UNTOLD)
    stuck = await tx.fetch("stuck_leases", late=stuck_for, limit=_LISTED)
    return Symptoms(
        now=now,
        overdue=[OverdueSchedule(*row) for row in await tx.fetch("overdue_schedules", late=LATE, limit=_LISTED)],
        stuck=[StuckRun(str(id), worker_id, expires_at) for id, worker_id, expires_at in stuck],
        queues={queue: runs for queue, (runs, _) in backlogs(backlog, "queue").items()},
        jobs={job: runs for job, (runs, _) in backlogs(backlog, "job").items()},
        workers=await live_workers(tx, silence),
        signals=int(signals),
    )


def _breach(kind: str, subject: str, what: str, since: int, details: str | None) -> OpenBreach:
    stored = msgspec.json.decode(details) if details else {}
    return OpenBreach(kind, subject, what, since, stored.get("message", ""))
