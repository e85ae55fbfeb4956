"""Beginning of a simulation: the lanes of a schedule, the runs that are live, and what limits and keys hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.payload_template import check_template, filled
from rota.core.limits.limits import Gate
from rota.core.planning.assumptions import Beginning, StandingRun
from rota.core.planning.simulated_limits import HeldKey
from rota.core.planning.tick import ScheduleState, following_plan
from rota.core.runs.options import gates_of, key_holds, with_limits_of_schedule
from rota.core.schedules.schedule import ScheduleDefinition
from rota.core.states import has_begun
from rota.errors import UnknownSchedule
from rota.store.databases.database import Tx
from rota.store.limits import quotas
from rota.store.limits.quotas import Under
from rota.store.planning.lanes import read_lanes
from rota.store.planning.scope_spans import open_scopes
from rota.store.schedules.schedule_row import ScheduleRow, schedule_row
from rota.values.scope import Scope

_MOST_RUNS = 10_000


class Present(msgspec.Struct, frozen=True):
    """State of a schedule now, as planning would find it, and the quotas of its scopes."""

    now: int
    state: ScheduleState
    scopes: tuple[Scope, ...]
    beginning: Beginning
    quotas: Under


async def read_present(tx: Tx, name: str, definition: ScheduleDefinition, job: JobDefinition) -> Present:
    """Read all that decides what a schedule will do; `definition` and `job` may be others than the stored ones."""
    rows = await tx.fetch("look_at_schedule", name=name)
    if not rows:
        raise UnknownSchedule(name, [other for (other,) in await tx.fetch("schedule_names")])
    row = schedule_row(rows[0])
    ((now,),) = await tx.fetch("now")
    scopes = tuple(await open_scopes(tx, row.id)) if definition.provider else definition.lanes
    lanes = (await read_lanes(tx, [row], {row.id: scopes})).of(row.id).lanes
    under = await quotas.under(tx, scopes)
    gates = {gate.key: gate for scope in scopes for gate in _gates(row, definition, job, scope, int(now), under)}
    keys = await _keys(tx, row, definition, job, scopes, int(now))
    ids = {live.id for lane in lanes.values() for live in lane.live} | {held.run_id for held in keys.values()}
    runs = await _runs(tx, ids, gates, int(now))
    awaits = row.awaits if any(run.id == row.awaits for run in runs) else None
    state = row.standing
    if row.awaits is not None and awaits is None:  # it has ended, and planning has not looked since
        state = msgspec.structs.replace(state, next_plan=following_plan(state, int(now)))
    beginning = Beginning(lanes, runs, keys, await _starts(tx, gates), awaits)
    return Present(int(now), state, scopes, beginning, under)


def _payload(row: ScheduleRow, definition: ScheduleDefinition, scope: Scope, at: int) -> str:
    payload = definition.payload
    if check_template(payload, after=definition.awaited is not None) and definition.awaited is None:
        payload = filled(payload, row.name, scope, at)
    return msgspec.json.encode(payload).decode()


def _gates(
    row: ScheduleRow, definition: ScheduleDefinition, job: JobDefinition, scope: Scope, at: int, under: Under
) -> tuple[Gate, ...]:
    of_job = gates_of(job, scope, _payload(row, definition, scope, at))
    return (*with_limits_of_schedule(of_job, definition.gates(row.id, row.name)), *under.get(scope, ()))


async def _keys(
    tx: Tx, row: ScheduleRow, definition: ScheduleDefinition, job: JobDefinition, scopes: Iterable[Scope], at: int
) -> dict[str, HeldKey]:
    """Read who holds the unique keys that the schedule's runs want."""
    if job.unique is None and job.repeatable:
        return {}
    keys: dict[str, HeldKey] = {}
    for scope in scopes:
        for hold in key_holds(job, scope, None, _payload(row, definition, scope, at), {}):
            for run_id, until, once, _, state, exists, _, _ in await tx.fetch("key_holder", key=hold.key):
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


async def _starts(tx: Tx, gates: Mapping[str, Gate]) -> dict[str, tuple[int, ...]]:
    """Read when attempts began that rates still count."""
    rates = [(key, gate.period) for key, gate in sorted(gates.items()) if gate.period is not None]
    starts: dict[str, tuple[int, ...]] = {}
    for key, at, count in await tx.fetch("begins_within", rates) if rates else ():
        starts[key] = (*starts.get(key, ()), *[at] * count)
    return starts
