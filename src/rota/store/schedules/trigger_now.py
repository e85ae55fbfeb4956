"""Trigger now: create runs of a schedule that belong to no plan time."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.ledger.audit import TRIGGERED
from rota.core.planning.overlap_and_failure import Create, Skip, decide
from rota.core.planning.tick import Planned, Tick, after_decision
from rota.core.runs.admit import SUPERSEDED
from rota.core.schedules.policies import Failure
from rota.errors import Invalid, NotTriggered, Overlapping
from rota.store.databases.database import Tx
from rota.store.ledger import audit
from rota.store.limits import quotas
from rota.store.planning.lanes import changed_lanes, read_lanes
from rota.store.planning.make_runs import PlannedSchedule, lane_run, make_runs, required_pattern
from rota.store.planning.plan import NewId
from rota.store.planning.scope_spans import open_scopes
from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.scope import Scope, scope_text


async def trigger(
    tx: Tx, row: ScheduleRow, new_id: NewId, scopes: tuple[Scope, ...], *, force: bool, actor: str | None = None
) -> list[str]:
    """Create a run in each scope. Overlap is obeyed unless `force`; pauses and earlier failures are ignored."""
    pattern = await required_pattern(tx, row)
    ((now,),) = await tx.fetch("now")
    lanes = (await read_lanes(tx, [row], {row.id: scopes})).of(row.id)
    planned, after = [], dict(lanes.lanes)
    for scope in scopes:
        decision = decide(row.definition.overlap, Failure(), after[scope], now, 1, forced=force)
        if isinstance(decision, Skip):
            raise Overlapping(row.name, decision.reason)
        assert isinstance(decision, Create)
        run = Planned(new_id(), scope, now, now, decision, by_hand=True)
        planned.append(run)
        after[scope] = after_decision(after[scope], run.run_id, decision)
    tick = Tick(tuple(planned), (), after, row.cursor_at, row.next_plan, None, row.fired)
    work = PlannedSchedule(row, row.standing, pattern, lanes, tick)
    under = await quotas.under(tx, scopes, [(pattern.job.name, pattern.place[0])])
    made = await make_runs(tx, [(work, run) for run in planned], int(now), under)
    await tx.fetch("insert_lane_runs", [lane_run(*pair) for pair in made])
    run_ids = [run.run_id for run in planned]
    await _refuse_skipped(tx, row.name, run_ids)
    if lanes.digested:
        await tx.fetch("digest_lane_runs", lanes.digested)
    if lanes.open_plan != row.open_plan:
        await tx.fetch("close_plan", no=row.cursor_no)
    saved = changed_lanes(row.id, lanes, after)
    if saved:
        await tx.fetch("save_lanes", saved)
    details = {"schedule_id": row.id, "runs": run_ids, "forced": force or None}
    await audit.note(tx, "schedule", row.name, TRIGGERED, actor, details)
    return run_ids


async def _refuse_skipped(tx: Tx, schedule: str, run_ids: list[str]) -> None:
    """Raise if a limit or a key caused a run to be skipped, because the caller of a trigger can be told.

    Not for runs that were superseded: of several under a limit that keeps the newest, the others give way, as they
    would one by one.
    """
    for (reason,) in await tx.fetch("skipped_among", [(id,) for id in run_ids]):
        if not reason.startswith(SUPERSEDED):
            raise NotTriggered(schedule, reason)


async def scopes_of(tx: Tx, row: ScheduleRow, scope: Scope | None, named: Sequence[Scope] = ()) -> tuple[Scope, ...]:
    """Return the requested scope, or all: as the provider names them now (`named`), or did last."""
    scopes = tuple(named or await open_scopes(tx, row.id)) if row.provider else row.definition.lanes
    if scope is None:
        if not scopes:
            ((trouble,),) = await tx.fetch("trouble_of", no=row.cursor_no)
            why = trouble or f"its provider {row.provider!r} returned none, or has not been called yet"
            raise Invalid(f"schedule {row.name!r} has no scopes yet", hint=f"name one: {why}")
        return scopes
    if scope not in scopes and not row.provider:
        raise Invalid(f"schedule {row.name!r} does not have scope {scope_text(scope)}")
    return (scope,)
