"""Retention: finished runs beyond what their job keeps, keys nobody holds, workers long silent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from rota.core.jobs.job import Retention
from rota.core.workers.requirements import CONDUCTS
from rota.core.workers.worker import SILENCE
from rota.store.databases.database import Row, Tx, Work
from rota.store.databases.pinned_plans import Turn, turn
from rota.store.jobs import execution_numbers
from rota.store.ledger import compact
from rota.store.monitoring import statistics
from rota.values.durations import in_micros
from rota.values.ids import last_id_of

_BATCH = 1_000
_BELONGINGS = (
    "note_outlived", "drop_attempts", "drop_events_of_runs", "drop_steps", "drop_progress", "drop_run_logs",
    "drop_followed", "drop_stages",
)  # fmt: skip
_AUDITED = timedelta(days=400)
"""A year, and time to look back on it."""


class _DroppedRun(NamedTuple):
    """A run as `drop_runs` returns it, in the order of its columns."""

    job: str
    state: str
    created_at: int
    started_at: int | None
    finished_at: int
    schedule_id: object
    scope_kind: str
    scope_id: str
    plan_time: int | None
    covers_from: int | None
    missed_count: int | None
    final_state: str
    reason: str | None
    backfilled: int
    retry_of: object
    id: object

    @property
    def planned(self) -> Row:
        """Columns that the ledger keeps of it."""
        return (
            self.schedule_id, self.scope_kind, self.scope_id, self.plan_time, self.covers_from, self.missed_count,
            self.final_state, self.reason, self.backfilled, self.retry_of,
        )  # fmt: skip

    @property
    def counted(self) -> Row:
        """Columns that statistics keep of it."""
        return self.job, self.state, self.created_at, self.started_at, self.finished_at, self.id

    @property
    def skip(self) -> Row:
        """Columns by which it is found among the skips of its schedule."""
        return self.schedule_id, self.scope_kind, self.scope_id, self.id


async def jobs_with_runs(tx: Tx) -> list[str]:
    return [job for (job,) in await tx.fetch("jobs_with_runs")]


async def prunable(tx: Tx, job: str, retention: Retention) -> Sequence[Row]:
    """One batch of a job's runs, by id."""
    newest = await tx.fetch("newest_kept", job=job, keep=retention.keep)
    if not newest:
        return []
    keep_for = in_micros(retention.keep_for)
    ((now,),) = await tx.fetch("now")
    # Nothing finished before it was made: of all the runs of the job, only those made that long ago are looked at.
    ((newest_id,),) = newest
    bound = min(str(newest_id), last_id_of(int(now) - keep_for))
    return await tx.fetch("prunable", job=job, newest=bound, keep_for=keep_for, limit=_BATCH)


Unneeded = Callable[[Tx, Sequence[Row]], Awaitable[Sequence[Row]]]
"""Return those of these runs, which are locked, that nothing needs."""


def drop_runs(rows: Sequence[Row], retention: Retention) -> Work[int]:
    async def unneeded(tx: Tx, locked: Sequence[Row]) -> Sequence[Row]:
        return await tx.fetch("prunable_among", locked, keep_for=in_micros(retention.keep_for))

    async def body(tx: Tx) -> int:
        return len(await drop(tx, rows, unneeded))

    return body


def drop_skips(rows: Sequence[Row]) -> Work[int]:
    async def unneeded(tx: Tx, locked: Sequence[Row]) -> Sequence[Row]:
        return await tx.fetch("surplus_among", locked)

    async def body(tx: Tx) -> int:
        return len(await drop(tx, rows, unneeded))

    return body


async def drop(tx: Tx, rows: Sequence[Row], unneeded: Unneeded) -> set[str]:
    """Delete those of these runs that nothing needs, with all that belongs to them, and what they conducted.

    Return the ids.
    """
    # They were found by an earlier read transaction, which blocks nobody; what made them prunable is asked again under
    # the lock, which somebody who comes to follow one takes, too. By a statement of its own: the one that locks may see
    # older rows. What somebody has at this moment is left alone: its follower cannot be seen yet.
    locked = {str(id): need or "" for id, need in await tx.fetch("lock_prunable", rows)}
    old: list[Row] = [(str(id),) for (id,) in await unneeded(tx, [(id,) for id in locked])] if locked else []
    conducted = [(id,) for (id,) in old if locked[id].startswith(CONDUCTS)]
    if conducted:  # what they conducted goes with them, but for what somebody follows
        ended = await tx.fetch("lock_replicas_of", conducted)
        old += [(str(id),) for (id,) in await tx.fetch("unneeded_replicas", ended)] if ended else []
        await tx.fetch("drop_replicas_of", conducted)
    if old:
        for belongings in _BELONGINGS:
            await tx.fetch(belongings, old)
        dropped = [_DroppedRun._make(row) for row in await tx.fetch("drop_runs", old)]
        # In the same transaction: whatever happens to it, each run counts once, by its row or in the sums.
        await compact.fold_runs(tx, [run.planned for run in dropped])
        await statistics.fold(tx, [run.counted for run in dropped])
        await execution_numbers.keep(tx, [(run.job, str(run.id)) for run in dropped])
        skips = [run.skip for run in dropped if run.state == "skipped" and run.schedule_id is not None]
        if skips:
            await tx.fetch("forget_skips", skips)
    return {id for (id,) in old}


async def stale_keys(tx: Tx, after: str) -> Turn:
    """Keys that nobody holds any more, as far as one batch goes."""
    # Reads keys that are held, too: to look for stale ones only would walk past all others to find a few.
    rows = await tx.fetch("keys_after", after=after, limit=_BATCH)
    return turn(rows, _BATCH, [(key, run_id) for key, run_id, is_stale in rows if is_stale])


def drop_keys(rows: Sequence[Row]) -> Work[int]:
    async def body(tx: Tx) -> int:
        return len(await tx.fetch("drop_keys", rows))

    return body


async def old_events(tx: Tx) -> Sequence[Row]:
    """One batch of what operators did long ago. What happened to a run is known as long as the run."""
    return await tx.fetch("old_events", age=in_micros(_AUDITED), limit=_BATCH)


def drop_events(rows: Sequence[Row]) -> Work[int]:
    async def body(tx: Tx) -> int:
        await tx.fetch("drop_events", rows)
        return len(rows)

    return body


async def silent_workers(tx: Tx) -> bool:
    return bool(await tx.fetch("silent_workers", silence=in_micros(SILENCE)))


async def drop_silent_workers(tx: Tx) -> None:
    await tx.fetch("drop_silent_workers", silence=in_micros(SILENCE))


def is_full_bite(count: int) -> bool:
    return count >= _BATCH
