"""Backfill: create runs for past plan times while the schedule's cursor is locked, so that the ledger stays exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rota.core.jobs.payload_template import filled
from rota.core.ledger.audit import BACKFILLED
from rota.core.ledger.backfill import (
    MOST_LOOKED_AT,
    MOST_RUNS,
    SAMPLE,
    Backfill,
    BackfillOrder,
    Choice,
    MissingPlanTime,
    choose,
    cut_all,
)
from rota.core.ledger.verify import BACKFILL, History, Range
from rota.core.limits.limits import Gate, LimitedRun
from rota.core.limits.lines import line_key
from rota.core.runs.admission import Admission, hold_of
from rota.core.runs.options import gates_of, key_holds, with_limits_of_schedule
from rota.core.runs.run import NewRun
from rota.errors import Invalid
from rota.store.databases.database import Row, Tx
from rota.store.ledger import audit
from rota.store.ledger.occurrences import history_of, planned_run, range_of, range_row
from rota.store.limits import admit, quotas
from rota.store.planning.make_runs import RunTemplate, put_in_place, required_pattern
from rota.store.planning.plan import NewId
from rota.store.planning.scope_spans import open_scopes
from rota.store.runs import enqueue, waits
from rota.store.schedules import change
from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.instants import instant
from rota.values.scope import Scope

_MORE_THAN_ALL = 2**31 - 1


async def backfill(tx: Tx, row: ScheduleRow, order: BackfillOrder, new_id: NewId) -> Backfill:
    """Create the missing runs, and return what was done."""
    if row.definition.follows is not None:
        raise Invalid(f"schedule {row.name!r} follows its own runs: it has no plan times in the past")
    if row.definition.awaited is not None:
        raise Invalid(f"schedule {row.name!r} follows the ends of another job: it has no plan times in the past")
    pattern = await required_pattern(tx, row)
    scopes = tuple(await open_scopes(tx, row.id)) if row.provider else row.definition.lanes
    before = row.revision
    row, decided = await _decided(tx, row, order, new_id)
    history = await history_of(tx, row)
    plan_times = _plan_times(row, order, history.after_end(decided), decided, len(scopes))
    pending = _pending(row, order, decided) * len(scopes)
    ranges = [range_of(columns) for columns in await tx.fetch("ranges", id=row.id)]
    choice = await _choice(tx, row, order, plan_times, scopes, ranges)
    if len(choice.missing) > MOST_RUNS:
        raise _too_many(len(choice.missing))
    made = await _make(tx, row, pattern, order, choice.missing, new_id)
    chosen = list(made.values())
    if not order.dry_run:
        if made:
            await _cut(tx, history, ranges, chosen)
        rested = row.revision if row.revision != before else None
        if made or rested:
            await _note(tx, row, order, len(made), rested)
    return Backfill(
        schedule=row.name,
        count=len(chosen),
        retried=sum(1 for missing in chosen if missing.instead_of is not None),
        already=choice.already,
        known=choice.known,
        pending=pending,
        held=len(choice.missing) - len(chosen),
        runs=() if order.dry_run else tuple(made),
        plan_times=tuple(instant(at) for at in list(dict.fromkeys(missing.plan_time for missing in chosen))[:SAMPLE]),
        dry_run=order.dry_run,
    )


async def _note(tx: Tx, row: ScheduleRow, order: BackfillOrder, count: int, rested: int | None) -> None:
    """Note the backfill as one event, even if a resting schedule also got a revision (`rested`) for it."""
    period = {"from_at": order.from_at, "to_at": order.to_at}
    details = {"schedule_id": row.id, "revision": rested, **period, "count": count}
    await audit.note(tx, "schedule", row.name, BACKFILLED, order.actor, details)


async def _decided(tx: Tx, row: ScheduleRow, order: BackfillOrder, new_id: NewId) -> tuple[ScheduleRow, int]:
    """Return the row, and up to when its plan times are decided.

    A resting schedule may still catch up with its plan times when it is resumed. A revision ends that: what is
    backfilled now is not caught up with later.
    """
    if row.active or order.to_at <= row.cursor_at or row.standing.room == 0:
        return row, row.cursor_at
    ((now,),) = await tx.fetch("now")
    if not order.dry_run:
        await change.rest_anew(tx, row, new_id)
        row = await change.locked(tx, row.name)
    return row, max(int(now), row.cursor_at)


def _plan_times(
    row: ScheduleRow, order: BackfillOrder, over: Iterable[tuple[int, int]], decided: int, scopes: int
) -> list[int]:
    """Return the decided plan times of the order, without those in `over`, periods after the schedule had ended."""
    times, until = row.standing.times, min(order.to_at, decided)
    open_parts = list(_without(order.from_at - 1, until, over))
    count = sum(times.count(low, high) for low, high in open_parts) * scopes
    if count > MOST_LOOKED_AT:
        raise _too_many(count)
    plan_times = []
    for low, high in open_parts:
        at = times.next(low)
        while at is not None and at <= high:
            plan_times.append(at)
            at = times.next(at)
    return plan_times


def _without(after: int, until: int, over: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what is left of (after, until] without the periods `over`, which are in order."""
    for low, high in over:
        if after < min(low, until):
            yield after, min(low, until)
        after = max(after, high)
    if after < until:
        yield after, until


def _pending(row: ScheduleRow, order: BackfillOrder, decided: int) -> int:
    """Return how many plan times of the order are still to be planned, at most as many as the schedule may have."""
    count, room = row.standing.times.count(max(decided, order.from_at - 1), order.to_at), row.standing.room
    return count if room is None else min(count, room)


def _too_many(count: int) -> Invalid:
    return Invalid(f"{count} runs are too many for one backfill", hint=f"at most {MOST_RUNS}: choose a shorter period")


async def _choice(
    tx: Tx,
    row: ScheduleRow,
    order: BackfillOrder,
    plan_times: Sequence[int],
    scopes: Sequence[Scope],
    ranges: Sequence[Range],
) -> Choice:
    if not plan_times:
        return Choice([], 0, 0)
    rows = await tx.fetch(
        "runs_between", id=row.id, from_at=plan_times[0], to_at=plan_times[-1], past=0, limit=_MORE_THAN_ALL
    )
    runs = [planned_run(columns) for columns in rows]
    newest: dict[str, str] = {}
    if order.ran.repeats and runs:
        first = min(run.id for run in runs)
        rows = await tx.fetch("derived_runs", job=row.definition.job, first=first)
        newest = {str(origin): state for origin, state in rows}
    return choose(plan_times, scopes, runs, newest, ranges, order.ran)


async def is_done(tx: Tx, done: Backfill) -> bool:
    """Return whether a backfill's runs exist, when it is unknown whether its transaction committed."""
    return bool(done.runs) and bool(await tx.fetch("which_exist", [(done.runs[0],)]))


async def _make(
    tx: Tx,
    row: ScheduleRow,
    pattern: RunTemplate,
    order: BackfillOrder,
    missing: Sequence[MissingPlanTime],
    new_id: NewId,
) -> dict[str, MissingPlanTime]:
    """Insert the runs, but for a dry run. Return them by id, without those that a unique key of another run makes
    unnecessary.
    """
    assert pattern.model is not None
    shape = _shape(pattern.model, order.actor)
    runs = {new_id(): (place, _payload(pattern, row.name, place)) for place in missing}
    conducts = shape.eligibility is not None and shape.eligibility.conducts
    own = () if conducts else (Gate(f"backfill:{row.id}", order.concurrency),)
    under = await quotas.under(tx, {place.scope for place in missing}, [(shape.job, shape.queue)])
    gated = {
        id: LimitedRun(
            id,
            shape.job,
            (*own, *_gates(row, pattern, place, text), *under.gates(shape.job, shape.queue, place.scope)),
            bool(shape.pipeline),
            -shape.priority,
        )
        for id, (place, text) in runs.items()
    }
    if pattern.keyed and runs:
        if not order.dry_run:
            await admit.lock(tx, list(gated.values()))  # lock order: limits before keys
        keyed = [_keyed(shape, pattern, gated[id], place, text) for id, (place, text) in runs.items()]
        unnecessary = await enqueue.take_keys(tx, keyed, dry_run=order.dry_run)
        runs = {id: run for id, run in runs.items() if id not in unnecessary}
    if runs and not order.dry_run:
        await tx.fetch("insert_backfilled", [_run_row(shape, row.id, id, *run) for id, run in runs.items()])
        waiting = await waits.follow(tx, _turns(list(runs), order.concurrency)) if conducts else set()
        ready = [
            (
                id,
                hold_of(Admission.BLOCKED if id in waiting else Admission.LIMITED, due=True),
                line_key(gated[id].gates),
            )
            for id in runs
        ]
        await tx.fetch("insert_backfilled_ready", ready)
        tx.wake(shape.queue)
        await put_in_place(tx, [(id, shape) for id in runs], [gated[id] for id in runs])
    return {id: place for id, (place, _) in runs.items()}


def _turns(ids: Sequence[str], concurrency: int) -> Iterator[tuple[str, str]]:
    """Yield (run, predecessor) pairs that limit concurrency by waiting.

    Runs with replicas cannot use a limit: no claim looks for them.
    """
    return zip(ids[concurrency:], ids, strict=False)


def _gates(row: ScheduleRow, pattern: RunTemplate, place: MissingPlanTime, payload: str) -> tuple[Gate, ...]:
    """Return the gates of a run in the order in which planning gives them: by key, the schedule's, the job's."""
    return with_limits_of_schedule(
        gates_of(pattern.job, place.scope, payload), pattern.definition.gates(row.id, row.name)
    )


def _keyed(shape: NewRun, pattern: RunTemplate, run: LimitedRun, place: MissingPlanTime, payload: str) -> NewRun:
    """Build the run as it takes its keys, with everything that a run which it replaces needs from it."""
    holds = key_holds(pattern.job, place.scope, None, payload, {})
    return msgspec.structs.replace(
        shape, id=run.id, payload=payload, retry_of=place.instead_of, holds=holds, gates=run.gates
    )


def _shape(model: NewRun, actor: str | None) -> NewRun:
    """Return the model with a tag that tells backfilled runs from the schedule's other runs."""
    tags: list[str] = msgspec.json.decode(model.tags) if model.tags else []
    metadata: dict[str, Any] = msgspec.json.decode(model.metadata) if model.metadata else {}
    if actor is not None:
        metadata["backfilled_by"] = actor
    return msgspec.structs.replace(
        model,
        tags=msgspec.json.encode([*tags, BACKFILL]).decode(),
        metadata=msgspec.json.encode(metadata).decode() if metadata else None,
    )


def _payload(pattern: RunTemplate, name: str, place: MissingPlanTime) -> str:
    if not pattern.templated:
        return pattern.payload
    return msgspec.json.encode(filled(pattern.definition.payload, name, place.scope, place.plan_time)).decode()


def _run_row(shape: NewRun, schedule_id: str, id: str, place: MissingPlanTime, payload: str) -> Row:
    """Return the columns of `insert_backfilled`, in their order."""
    return (
        id,
        shape.job,
        shape.job_version,
        shape.queue,
        shape.priority,
        place.scope.kind,
        place.scope.id,
        payload,
        shape.tags,
        shape.metadata,
        shape.overrides,
        shape.max_attempts,
        shape.on_lost,
        schedule_id,
        place.plan_time,
        place.instead_of,
        place.instead_of,
    )


async def _cut(tx: Tx, history: History, ranges: Iterable[Range], made: Sequence[MissingPlanTime]) -> None:
    cut, remaining = [], []
    for old, pieces in cut_all(history, ranges, made):
        *key, _ = range_row(history.id, old)
        cut.append(key)
        remaining += [range_row(history.id, piece) for piece in pieces]
    if cut:
        await tx.fetch("drop_ranges", cut)
    if remaining:
        await tx.fetch("put_ranges", remaining)
