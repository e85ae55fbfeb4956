"""Trigger now: runs of a schedule that belong to no plan time."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.ledger.audit import TRIGGERED
from rota.core.planning.overlap_and_failure import Create, Skip, decide
from rota.core.planning.tick import Planned, Tick, after_decision
from rota.core.schedules.policies import Failure
from rota.errors import Invalid, JobDisabled, NotTriggered, Overlapping, UnknownJob
from rota.store.databases.database import Tx
from rota.store.ledger import audit
from rota.store.limits import quotas
from rota.store.limits.admit import SUPERSEDED
from rota.store.planning.lanes import changed_lanes, read_lanes
from rota.store.planning.make_runs import PlannedSchedule, lane_run, make_runs, patterns_of
from rota.store.planning.plan import NewId
from rota.store.planning.scope_spans import open_scopes
from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.scope import Scope


async def trigger(
    tx: Tx, row: ScheduleRow, new_id: NewId, scopes: tuple[Scope, ...], *, force: bool, actor: str | None = None
) -> list[str]:
    """Overlap is obeyed unless forced; whether the schedule is paused, or its last run failed, does not matter."""
    (pattern,) = await patterns_of(tx, [row.text])
    if isinstance(pattern, str):
        raise UnknownJob(row.definition.job)
    if pattern.model is None:
        raise JobDisabled(pattern.job.name)
    ((now,),) = await tx.fetch("now")
    lanes = (await read_lanes(tx, [row], {row.id: scopes})).of(row.id)
    planned, after = [], dict(lanes.lanes)
    for one in scopes:
        decision = decide(row.definition.overlap, Failure(), after[one], now, 1, forced=force)
        if isinstance(decision, Skip):
            raise Overlapping(row.name, decision.reason)
        assert isinstance(decision, Create)
        planned.append(Planned(new_id(), one, now, now, decision, by_hand=True))
        after[one] = after_decision(after[one], planned[-1].run_id, decision)
    tick = Tick(tuple(planned), (), after, row.cursor_at, row.next_plan, None, row.fired)
    work = PlannedSchedule(row, row.standing, pattern, lanes, tick)
    made = await make_runs(tx, [(work, one) for one in planned], int(now), await quotas.under(tx, scopes))
    await tx.fetch("insert_lane_runs", [lane_run(*pair) for pair in made])
    await _refuse_skipped(tx, row.name, [one.run_id for one in planned])
    if lanes.digested:
        await tx.fetch("digest_lane_runs", lanes.digested)
    if lanes.open_plan != row.open_plan:
        await tx.fetch("close_plan", no=row.cursor_no)
    saved = changed_lanes(row.id, lanes, after)
    if saved:
        await tx.fetch("save_lanes", saved)
    run_ids = [one.run_id for one in planned]
    told = {"schedule_id": row.id, "runs": run_ids, "forced": force or None}
    await audit.note(tx, "schedule", row.name, TRIGGERED, actor, told)
    return run_ids


async def _refuse_skipped(tx: Tx, schedule: str, run_ids: list[str]) -> None:
    """A plan time that its limit or its key does not let be is skipped; but whoever triggers can be told.

    Of several for one limit that keeps the newest, the others gave way, as they would if they had come one by one.
    """
    for (reason,) in await tx.fetch("skipped_among", [(id,) for id in run_ids]):
        if reason != SUPERSEDED:
            raise NotTriggered(schedule, reason)


async def scopes_of(tx: Tx, row: ScheduleRow, scope: Scope | None, named: Sequence[Scope] = ()) -> tuple[Scope, ...]:
    """The one that is asked for; else all, as its provider names them now, or did when it was asked last."""
    known = tuple(named or await open_scopes(tx, row.id)) if row.provider else row.definition.lanes
    if scope is None:
        if not known:
            ((trouble,),) = await tx.fetch("trouble_of", no=row.cursor_no)
            why = trouble or f"its provider {row.provider!r} named none, or was not asked so far"
            raise Invalid(f"schedule {row.name!r} has no scopes yet", hint=f"name one: {why}")
        return known
    if scope not in known and not row.provider:
        raise Invalid(f"schedule {row.name!r} is not for {scope.kind}/{scope.id}")
    return (scope,)
