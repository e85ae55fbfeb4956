"""Facts for explanations: read as of one instant here, turned into words in core."""

from __future__ import annotations

import msgspec

from rota.core.ledger.explain_plan_time import Explanation, PlanTimeFacts, PlanTimeRun, explain_plan_time, newest_plan
from rota.core.ledger.explain_run import LimitFacts, LiveWorker, Paused, RunFacts, explain_run
from rota.core.limits.live import NO_KIND, live_limit
from rota.core.planning.overlap_and_failure import Lane
from rota.core.runs.admission import Hold
from rota.core.runs.payload import shown_places
from rota.core.schedules.schedule import Schedule
from rota.core.states import RunState
from rota.core.workers.worker import WorkerState
from rota.errors import Invalid, UnknownSchedule
from rota.store.databases.database import Tx
from rota.store.jobs import pipeline_stages
from rota.store.ledger.occurrences import history_of, planned_run, range_of, row_of, snapshot, with_retries
from rota.store.limits import quotas
from rota.store.planning.lanes import read_lanes
from rota.store.planning.make_runs import patterns_of
from rota.store.planning.scope_spans import open_scopes
from rota.store.runs import read
from rota.store.schedules.schedule_operations import schedule_of
from rota.store.schedules.schedule_row import ScheduleRow
from rota.store.workers import replicas
from rota.store.workers.requirements import requirements_of_run
from rota.values.instants import instant, maybe_instant
from rota.values.scope import Scope, scope_text

_MOST = 1_000
_MOST_SCOPES = 10_000


async def explain_schedule(tx: Tx, name: str, at: int | None, silence: int) -> Explanation:
    """Explain the plan time `at`, or the newest one. `silence`: how long a living worker may be silent."""
    await snapshot(tx)
    row = await row_of(tx, name)
    history, schedule = await history_of(tx, row), await _schedule(tx, name)
    ((now,),) = await tx.fetch("now")
    if at is None:
        at = newest_plan(history, schedule, await _last_run(tx, row), int(now))
    if at is None:
        raise Invalid(f"schedule {name!r} has had no plan time yet, and no next one is known")
    ((next_at,),) = await tx.fetch("schedule_due", id=row.id)
    (pattern,) = await patterns_of(tx, [row.text])
    rows = await tx.fetch("runs_at", id=row.id, at=at, limit=_MOST_SCOPES)
    planned = await with_retries(tx, [planned_run(run) for *run, _, _, _, _, _ in rows])
    runs = [
        PlanTimeRun(run, run_at, started_at, finished_at, cancelled_by, read.error_of(error))
        for run, (*_, run_at, started_at, finished_at, cancelled_by, error) in zip(planned, rows, strict=True)
    ]
    covering = [planned_run(run) for run in await tx.fetch("runs_covering", id=row.id, at=at, limit=_MOST)]
    ranges = await tx.fetch("ranges_between", id=row.id, from_at=at, to_at=at, past=0, limit=_MOST)
    return explain_plan_time(
        PlanTimeFacts(
            at=at,
            now=int(now),
            schedule=schedule,
            history=history,
            runs=runs,
            covering=covering,
            ranges=[range_of(columns) for columns in ranges],
            lanes=await _lanes(tx, row),
            max_attempts=1 if isinstance(pattern, str) else pattern.job.retry.max_attempts,
            next_at=next_at,
            provider=row.provider,
            planners=len(await tx.fetch("live_workers", silence=silence)),
        )
    )


async def _last_run(tx: Tx, row: ScheduleRow) -> int | None:
    """Return the plan time of the last run, for schedules whose runs name them (which have one scope)."""
    if not row.standing.times.waits_for_ends:
        return None
    scope = row.definition.lanes[0]
    ((plan_time,),) = await tx.fetch("newest_planned", id=row.id, kind=scope.kind, name=scope.id)
    return None if plan_time is None else int(plan_time)


async def _schedule(tx: Tx, name: str) -> Schedule:
    for row in await tx.fetch("get_schedule", name=name):
        return schedule_of(row)
    raise UnknownSchedule(name)


async def _lanes(tx: Tx, row: ScheduleRow) -> dict[Scope, Lane]:
    scopes = tuple(await open_scopes(tx, row.id)) if row.provider else row.definition.lanes
    return (await read_lanes(tx, [row], {row.id: scopes})).of(row.id).lanes


async def explain_one_run(tx: Tx, part: str, silence: int, within: Scope | None = None) -> Explanation:
    """Explain a run. `within`: hide what belongs to other scopes, for a caller who may see only one."""
    await snapshot(tx)
    facts = await _facts_of_run(tx, await read.find_run(tx, part, within), silence)
    return explain_run(facts if within is None else await _seen_within(tx, facts, within))


async def _seen_within(tx: Tx, facts: RunFacts, scope: Scope) -> RunFacts:
    """Remove what belongs to other scopes.

    A full limit is still shown, because it holds the run back, but not who fills it.
    """
    mine = await read.of_scope(tx, [*(id for id, _, _ in facts.waits_for), *facts.inputs, *facts.awaited_by], scope)
    waits_for = [(id, state, kind) for id, state, kind in facts.waits_for if id in mine]
    full = [limit for limit in facts.limits if limit.held >= limit.max]
    ((before,),) = await tx.fetch("count_own_before", id=facts.run.id)
    return msgspec.structs.replace(
        facts,
        waits_for=waits_for,
        inputs={id: places for id, places in facts.inputs.items() if id in mine},
        awaited_by=[id for id in facts.awaited_by if id in mine],
        limits=[msgspec.structs.replace(limit, held=limit.max) for limit in full],
        before=int(before),
        walled=True,
        apart=len(waits_for) < len(facts.waits_for),
    )


async def _facts_of_run(tx: Tx, run_id: str, silence: int) -> RunFacts:
    run = await read.get_run(tx, run_id)
    ((now,),) = await tx.fetch("now")
    ((cancelled_by, hold, expires_at, cancel_at, shielded, step),) = await tx.fetch("run_details", id=run_id)
    workers = await live_workers(tx, silence)
    ((before,),) = await tx.fetch("count_before", id=run_id)
    own_replicas = await replicas.of_run(tx, run_id)
    # A run with replicas is under no limit itself. Its replicas are all under the same ones: any that waits will do.
    limited = next((it.run_id for it in own_replicas if it.counts and it.state is RunState.QUEUED), run_id)
    wider = await quotas.in_force(tx, [run.scope], [(run.job, run.queue)])
    set_by = {
        gate.key: live_limit(quota)
        for place, quota in wider.items()
        if place.kind == NO_KIND
        for gate in quota.gates(place)
    }
    return RunFacts(
        run=run,
        now=instant(int(now)),
        hold=hold,
        waits_for=[(str(id), state, kind) for id, state, kind in await tx.fetch("awaited_runs", id=run_id)],
        inputs={
            str(id): shown_places(places)
            for id, places in (await tx.fetch("inputs_of", id=run_id) if hold == Hold.BLOCKED else ())
        },
        awaited_by=[str(id) for (id,) in await tx.fetch("runs_waiting_for", id=run_id, limit=_MOST)],
        limits=[
            LimitFacts(key, most, int(held), period, maybe_instant(opens_at), set_by.get(key))
            for key, most, held, period, opens_at in await tx.fetch("limits_of_run", id=limited)
        ],
        pauses=[
            Paused(kind, name, instant(at), by, reason, word)
            for kind, name, at, by, reason, word in await tx.fetch("pauses_of_run", id=run_id)
        ]
        + [
            Paused("scope", scope_text(place), maybe_instant(quota.since), quota.by, quota.reason)
            for place, quota in wider.items()
            if quota.paused
        ],
        workers=workers,
        before=int(before),
        attempts=await read.attempts(tx, run_id),
        cancelled_by=cancelled_by,
        lease_until=None if expires_at is None else instant(expires_at),
        cancel_until=None if cancel_at is None else instant(cancel_at),
        shielded=shielded is not None and shielded > 0,
        step=step,
        requirements=await requirements_of_run(tx, run_id),
        replicas=own_replicas,
        siblings=await replicas.of_run(tx, run.parent_id) if run.parent_id else (),
        for_worker=await replicas.worker_of(tx, run_id),
        part=await pipeline_stages.part_now(tx, run_id),
    )


async def live_workers(tx: Tx, silence: int) -> list[LiveWorker]:
    rows = await tx.fetch("live_workers", silence=silence)
    return [
        LiveWorker(id, tuple(_names(queues)), tuple(_names(jobs)), WorkerState(state), tuple(_names(labels)), version)
        for id, queues, jobs, state, labels, version in rows
    ]


def _names(text: str) -> list[str]:
    return msgspec.json.decode(text, type=list[str])
