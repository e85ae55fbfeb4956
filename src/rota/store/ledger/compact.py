"""Retention of schedules: fold pruned runs into ranges, and delete schedules that were dropped long ago."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from rota.core.calendar.zones import TZDATA_VERSION
from rota.core.jobs.job import Retention
from rota.core.ledger.backfill import of_scope
from rota.core.ledger.compact import MISSED, RAN, ForgottenRun, joined, range_of_gone
from rota.core.ledger.verify import UNNAMED, History, Range
from rota.core.schedules.revisions import Revision
from rota.store.databases.database import Row, Tx, Work
from rota.store.ledger.occurrences import range_of, range_row, revisions_of, spans_of
from rota.values.durations import in_micros
from rota.values.scope import Scope

_BITE = 1_000
_DELETED_FOR = timedelta(days=30)
_TABLES = ("rota_revision", "rota_range", "rota_scope_span", "rota_lane", "rota_lane_run")


async def fold_runs(tx: Tx, dropped: Iterable[Row]) -> None:
    """Fold runs that were deleted in this transaction into ranges, if they belonged to plan times."""
    gone = [
        ForgottenRun(str(id), Scope(kind, name), plan_time, covers_from, covered or 0, state, reason, bool(backfilled))
        for id, kind, name, plan_time, covers_from, covered, state, reason, backfilled, retry_of in dropped
        if id is not None and plan_time is not None and retry_of is None
    ]
    if not gone:
        return
    await _lock(tx, {run.schedule_id for run in gone})
    histories = {id: await _history(tx, id) for id in {run.schedule_id for run in gone if run.backfilled}}
    await _extend(tx, [(run.schedule_id, range_of_gone(run, _reason(run, histories))) for run in gone])


def _reason(run: ForgottenRun, histories: dict[str, History]) -> str:
    named = not run.backfilled or histories[run.schedule_id].names(run.scope, run.plan_time)
    return RAN if named else UNNAMED


async def _lock(tx: Tx, ids: Iterable[str]) -> None:
    """Lock the cursors of schedules in id order.

    Two janitors fold into the same schedule one after the other, and never during its backfill.
    """
    await tx.fetch("lock_schedules", [(id,) for id in sorted(ids)])


async def _history(tx: Tx, id: str) -> History:
    ((name, cursor),) = await tx.fetch("name_and_cursor", id=id) or [("", 0)]
    return History(id, name, await revisions_of(tx, id), await spans_of(tx, id), cursor, TZDATA_VERSION)


async def _extend(tx: Tx, ranges: Iterable[tuple[str, Range]]) -> None:
    rows = {key: range_row(key[0], entry) for key, entry in joined(ranges).items()}  # keys begin with the schedule
    extended = {
        (str(id), Scope(scope_kind, scope_id) if scope_kind else None, kind, reason)
        for id, scope_kind, scope_id, kind, reason in await tx.fetch("extend_ranges", list(rows.values()))
    }
    new = [row for key, row in rows.items() if key not in extended]
    if new:
        await tx.fetch("put_ranges", new)


async def jobs_of_schedules(tx: Tx) -> list[str]:
    return [job for (job,) in await tx.fetch("jobs_of_schedules")]


async def surplus_skips(tx: Tx, job: str) -> Sequence[Row]:
    """Return one batch of ids of skipped runs: of those that were noted, all but the newest of each lane."""
    return await tx.fetch("surplus_skips", job=job, limit=_BITE)


async def old_missed(tx: Tx, job: str, retention: Retention) -> Sequence[Row]:
    """Return one batch of missed ranges that are older than runs are kept."""
    return await tx.fetch("old_missed", job=job, keep_for=in_micros(retention.keep_for), limit=_BITE)


def fold_missed(rows: Sequence[Row]) -> Work[int]:
    async def body(tx: Tx) -> int:
        await _lock(tx, {str(id) for id, *_ in rows})
        # Only what this transaction deletes is folded: another janitor may have been faster.
        dropped = [(str(id), range_of(columns)) for id, *columns in await tx.fetch("drop_ranges", rows)]
        histories = {id: await _history(tx, id) for id in {id for id, _ in dropped}}
        missed = [(id, piece) for id, entry in dropped for piece in of_scope(entry, histories[id])]
        await _extend(
            tx, [(id, Range(old.from_at, old.to_at, old.scope, "pruned", MISSED, old.count)) for id, old in missed]
        )
        return len(dropped)

    return body


async def gone_scopes(tx: Tx, job: str, retention: Retention) -> Sequence[Row]:
    """Return one batch of scopes that were last named before runs are kept, and have no runs left."""
    rows = await tx.fetch("gone_scopes", job=job, keep_for=in_micros(retention.keep_for), limit=_BITE)
    listed = {id: _listed(await revisions_of(tx, id)) for id in {str(id) for id, _, _ in rows}}
    return [(id, kind, name) for id, kind, name in rows if Scope(kind, name) not in listed[str(id)]]


def _listed(revisions: Iterable[Revision]) -> set[Scope]:
    """Return the scopes that a revision lists itself. Their ranges account for more than a provider's spans."""
    own = [revision.definition for revision in revisions if revision.definition.provider is None]
    return {scope for definition in own for scope in definition.lanes}


def forget_scopes(rows: Sequence[Row]) -> Work[int]:
    """Delete a scope's spans together with its ranges and lanes, so that the ledger still adds up."""

    async def body(tx: Tx) -> int:
        await _lock(tx, {str(id) for id, _, _ in rows})
        gone = list({tuple(row) for row in await tx.fetch("drop_spans", rows)})
        if gone:
            await tx.fetch("drop_ranges_of_scopes", gone)
            await tx.fetch("drop_lanes_of_scopes", gone)
        return len(gone)

    return body


async def long_deleted(tx: Tx) -> Sequence[Row]:
    return await tx.fetch("long_deleted", deleted_for=in_micros(_DELETED_FOR), limit=_BITE)


def drop_schedules(rows: Sequence[Row]) -> Work[int]:
    async def body(tx: Tx) -> int:
        await _lock(tx, {str(id) for (id,) in rows})  # cursors first, as whoever restores one
        gone = await tx.fetch("drop_schedules", rows)
        ids = [(id,) for id, _ in gone]
        for table in _TABLES if gone else ():
            await tx.fetch(f"drop_{table.removeprefix('rota_')}s_of", ids)
        await tx.fetch("drop_cursors", [(no,) for _, no in gone])
        return len(gone)

    return body
