"""Count ended runs into their job's statistics, in the order of their ids, and note skipped ones.

A run that had not ended when counting passed it is noted as uncounted, and counted later. So neither statistics nor the
search for skipped runs read history, and the end of a run writes nothing for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota.core.monitoring.statistics import Ended, countable_until, is_late
from rota.core.runs.claim import NIL_ID
from rota.store.databases.database import Row, Tx, Work
from rota.store.databases.pinned_plans import Turn, turn
from rota.store.monitoring import statistics
from rota.values.ids import last_id_of

_BITE = 2_000
_SKIPS_KEPT = 100


class _Run(NamedTuple):
    """The columns of `next_to_count`, and `late`, which `uncounted_after` adds, in their order."""

    run_id: object
    state: str | None
    created_at: int
    started_at: int | None
    finished_at: int
    schedule_id: object | None
    scope_kind: str
    scope_id: str
    plan_time: int | None
    retry_of: object | None
    late: int = 0

    @property
    def id(self) -> str:
        return str(self.run_id)

    @property
    def is_late(self) -> bool:
        return is_late(self.id, self.created_at)

    @property
    def skipped(self) -> bool:
        """Return whether it is the skipped run of a plan time, not a retry of one."""
        planned = self.schedule_id is not None and self.plan_time is not None and self.retry_of is None
        return self.state == "skipped" and planned

    def ended(self) -> Ended:
        assert self.state is not None
        return Ended(self.state, self.created_at, self.started_at, self.finished_at)


async def next_runs(tx: Tx, job: str) -> Sequence[Row]:
    """Return one batch of runs that counting has not passed yet."""
    ((now,),) = await tx.fetch("now")
    until, mark = last_id_of(countable_until(int(now))), await statistics.mark_of(tx, job)
    return await tx.fetch("next_to_count", job=job, mark=mark, until=until, limit=_BITE)


def count(job: str) -> Work[int]:
    async def body(tx: Tx) -> int:
        await statistics.lock(tx, job)
        runs = [_Run(*row) for row in await next_runs(tx, job)]
        if not runs:
            return 0
        await statistics.add(tx, job, [run.ended() for run in runs if run.state is not None and not run.is_late])
        uncounted = [(job, run.id, int(run.is_late)) for run in runs if run.state is None or run.is_late]
        if uncounted:
            await tx.fetch("note_uncounted", uncounted)
        await _note_skips(tx, job, runs)
        await tx.fetch("set_mark", job=job, mark=runs[-1].id)
        return len(runs)

    return body


async def passed_runs(tx: Tx, job: str, after: str) -> Turn:
    """Return one batch of the runs that counting has passed, with those that have ended since."""
    rows = [_Run(*row) for row in await tx.fetch("uncounted_after", job=job, after=after, limit=_BITE)]
    return turn(rows, _BITE, [run for run in rows if run.state is not None and not run.late])


def count_passed(job: str, after: str = NIL_ID) -> Work[int]:
    """Count the batch of `passed_runs`.

    It is read again under the lock: another process may have counted some of it.
    """

    async def body(tx: Tx) -> int:
        await statistics.lock(tx, job)
        runs = [_Run(*row) for row in (await passed_runs(tx, job, after)).found]
        if runs:
            await statistics.add(tx, job, [run.ended() for run in runs])
            await tx.fetch("forget_uncounted", [(job, run.id) for run in runs])
            await _note_skips(tx, job, runs)
        return len(runs)

    return body


async def _note_skips(tx: Tx, job: str, runs: Sequence[_Run]) -> None:
    skipped = [run for run in runs if run.skipped]
    if skipped:
        skips = [(str(run.schedule_id), run.scope_kind, run.scope_id, run.id, job) for run in skipped]
        await tx.fetch("note_skips", skips)
        lanes = {(schedule_id, kind, name) for schedule_id, kind, name, _, _ in skips}
        await tx.fetch("mark_surplus", sorted(lanes), keep=_SKIPS_KEPT)
