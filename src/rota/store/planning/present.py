"""Beginning of a simulation: the lanes of a schedule, the runs that are live, and what limits and keys hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.payload_template import check_template, filled
from rota.core.limits.limits import Gate, is_line
from rota.core.limits.lines import in_line
from rota.core.planning.assumptions import Beginning, Present, StandingRun
from rota.core.planning.simulated_limits import HeldKey, StandingLimit
from rota.core.planning.tick import ScheduleState
from rota.core.runs.claim import NIL_ID
from rota.core.runs.options import gates_of, key_holds, with_limits_of_schedule
from rota.core.schedules.schedule import ScheduleDefinition
from rota.core.states import has_begun
from rota.store.databases.database import Tx
from rota.store.limits import quotas
from rota.store.planning.lanes import read_lanes, up_to_date
from rota.store.planning.scope_spans import open_scopes
from rota.store.schedules.schedule_row import schedule_row
from rota.values.scope import Scope

_MOST_RUNS = 10_000
_LAST_RUNS, _LOOKED_AT = 20, 200


async def read_present(tx: Tx, name: str, definition: ScheduleDefinition, job: JobDefinition) -> Present:
    """Read all that decides what a schedule will do; `definition` and `job` may be others than the stored ones, and
    there may be no such schedule yet."""
    row = next(map(schedule_row, await tx.fetch("look_at_schedule", name=name)), None)
    ((now,),) = await tx.fetch("now")
    state, awaits, lanes, scopes = ScheduleState(NIL_ID, name, definition, int(now), None), None, {}, definition.lanes
    if row is None:
        scopes = () if definition.provider else scopes
    else:
        scopes = tuple(await open_scopes(tx, row.id)) if definition.provider else scopes
        all_lanes = await read_lanes(tx, [row], {row.id: scopes})
        lanes = all_lanes.of(row.id).lanes
        state = up_to_date(row, row.definition, all_lanes.of(row.id), all_lanes.ended, int(now))
        awaits = row.awaits if state.next_plan is None else None
    queue = str(definition.options.get("queue", job.queue))
    wider = await quotas.under(tx, scopes, [(job.name, queue)])
    under = {scope: found for scope in scopes if (found := wider.gates(job.name, queue, scope))}
    of_scopes = [_gates(state, definition, job, scope, int(now), under) for scope in scopes]
    gates = {gate.key: gate for own in of_scopes for gate in own}
    keys = await _keys(tx, name, definition, job, scopes, int(now))
    ids = {live.id for lane in lanes.values() for live in lane.live} | {held.run_id for held in keys.values()}
    runs = await _runs(tx, ids, gates, int(now))
    in_lines = [in_line(own) for own in (*of_scopes, *(run.gates for run in runs))]
    limits = await _limits(tx, {gate.key for own in in_lines for gate in own})
    beginning = Beginning(lanes, runs, keys, await _starts(tx, gates), awaits, limits=limits)
    return Present(int(now), state, scopes, beginning, under, await _durations(tx, job.name))


async def _durations(tx: Tx, job: str) -> tuple[int, ...]:
    """Read how long the last runs of a job took that ended by themselves."""
    rows = await tx.fetch("last_durations", job=job, looked_at=_LOOKED_AT, limit=_LAST_RUNS)
    return tuple(int(took) for (took,) in rows)


def _payload(name: str, definition: ScheduleDefinition, scope: Scope, at: int) -> str:
    payload = definition.payload
    if check_template(payload, after=definition.awaited is not None) and definition.awaited is None:
        payload = filled(payload, name, scope, at)
    return msgspec.json.encode(payload).decode()


def _gates(
    state: ScheduleState,
    definition: ScheduleDefinition,
    job: JobDefinition,
    scope: Scope,
    at: int,
    under: Mapping[Scope, tuple[Gate, ...]],
) -> tuple[Gate, ...]:
    of_job = gates_of(job, scope, _payload(state.name, definition, scope, at))
    return (*with_limits_of_schedule(of_job, definition.gates(state.id, state.name)), *under.get(scope, ()))


async def _keys(
    tx: Tx, name: str, definition: ScheduleDefinition, job: JobDefinition, scopes: Iterable[Scope], at: int
) -> dict[str, HeldKey]:
    """Read who holds the unique keys that the schedule's runs want."""
    if job.unique is None and job.repeatable:
        return {}
    keys: dict[str, HeldKey] = {}
    for scope in scopes:
        for hold in key_holds(job, scope, None, _payload(name, definition, scope, at), {}):
            for _, run_id, until, once, _, state, exists, _, _ in await tx.fetch("key_holders", [(hold.key,)]):
                keys[hold.key] = HeldKey(str(run_id), until, bool(once), not exists or state == "succeeded")
    return keys


async def _runs(tx: Tx, ids: set[str], gates: Mapping[str, Gate], now: int) -> tuple[StandingRun, ...]:
    """Read the live runs among these, and those under the limits that new runs will come under, oldest first."""
    if gates:
        limit_keys = [(key,) for key in sorted(gates)]
        ids = ids | {str(id) for (id,) in await tx.fetch("runs_under", limit_keys, limit=_MOST_RUNS)}
    if not ids:
        return ()
    rows = [(id,) for id in sorted(ids)]
    under: dict[str, list[Gate]] = {}
    for id, key, most, period in await tx.fetch("gates_of_runs", rows):
        if not is_line(key):
            under.setdefault(str(id), []).append(gates.get(key) or Gate(key, most, period=period))
    after: dict[str, list[str]] = {}
    for id, other in await tx.fetch("awaited_by_each", rows):
        after.setdefault(str(id), []).append(str(other))
    runs = []
    for id, kind, scope_id, plan_time, last, attempt, run_at, fence, claimed_at, stops in await tx.fetch(
        "standing_runs", rows
    ):
        waits = run_at is not None
        runs.append(
            StandingRun(
                id=str(id),
                scope=Scope(kind, scope_id),
                run_at=run_at if waits else now,
                attempt=attempt + 1 if waits else attempt,
                last=last,
                begun=not waits or has_begun(fence),
                claimed_at=None if waits else claimed_at or now,
                stopping=bool(stops),
                after=tuple(after.get(str(id), ())),
                gates=tuple(under.get(str(id), ())),
                plan_time=plan_time,
            )
        )
    return tuple(sorted(runs, key=lambda run: run.id))


async def _limits(tx: Tx, keys: Collection[str]) -> tuple[StandingLimit, ...]:
    """Read how claims left these limits: which are shut and why, and whose turn is next."""
    rows = await tx.fetch("standing_limits", [(key,) for key in sorted(keys)]) if keys else ()
    return tuple(StandingLimit(*row) for row in rows)


async def _starts(tx: Tx, gates: Mapping[str, Gate]) -> dict[str, tuple[int, ...]]:
    """Read when attempts began that rates still count."""
    rates = [(key, gate.period) for key, gate in sorted(gates.items()) if gate.period is not None]
    starts: dict[str, tuple[int, ...]] = {}
    for key, at, count in await tx.fetch("begins_within", rates) if rates else ():
        starts[key] = (*starts.get(key, ()), *[at] * count)
    return starts
