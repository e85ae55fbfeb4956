"""Count ended runs into their job's statistics, in the order of their ids, and note skipped ones.

A run that had not ended when counting passed it is noted as uncounted, and counted later. So neither statistics nor the
search for skipped runs read history, and the end of a run writes nothing for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.monitoring.statistics import Ended, countable_until, is_late
from rota.core.runs.claim import NIL_ID
from rota.store.databases.database import Row, Tx, Work
from rota.store.databases.pinned_plans import Turn, turn
from rota.store.monitoring import statistics
from rota.store.runs.prune import last_id_of

_BITE = 2_000
_SKIPS_KEPT = 100


async def next_runs(tx: Tx, job: str) -> Sequence[Row]:
    """Return one batch of runs that counting has not passed yet."""
    ((now,),) = await tx.fetch("now")
    until, mark = last_id_of(countable_until(int(now))), await statistics.mark_of(tx, job)
    return await tx.fetch("next_to_count", job=job, mark=mark, until=until, limit=_BITE)


def count(job: str) -> Work[int]:
    async def body(tx: Tx) -> int:
        await statistics.lock(tx, job)
        rows = await next_runs(tx, job)
        if not rows:
            return 0
        ended = [row for row in rows if row[1] is not None and not _is_late(row)]
        await statistics.add(tx, job, [_ended(row) for row in ended])
        left = [(job, str(row[0]), int(_is_late(row))) for row in rows if row[1] is None or _is_late(row)]
        if left:
            await tx.fetch("note_uncounted", left)
        await _note_skips(tx, job, rows)
        await tx.fetch("set_mark", job=job, mark=str(rows[-1][0]))
        return len(rows)

    return body


async def passed_runs(tx: Tx, job: str, after: str) -> Turn:
    """Return one batch of the runs that counting has passed, with those that have ended since."""
    rows = await tx.fetch("uncounted_after", job=job, after=after, limit=_BITE)
    return turn(rows, _BITE, [row[:10] for row in rows if row[1] is not None and not row[10]])


def count_passed(job: str, after: str = NIL_ID) -> Work[int]:
    """Count the batch of `passed_runs`.

    It is read again under the lock: another process may have counted some of it.
    """

    async def body(tx: Tx) -> int:
        await statistics.lock(tx, job)
        rows = (await passed_runs(tx, job, after)).found
        if rows:
            await statistics.add(tx, job, [_ended(row) for row in rows])
            await tx.fetch("forget_uncounted", [(job, str(row[0])) for row in rows])
            await _note_skips(tx, job, rows)
        return len(rows)

    return body


async def _note_skips(tx: Tx, job: str, rows: Sequence[Row]) -> None:
    skips = []
    for id, state, _, _, _, schedule_id, kind, name, plan_time, retry_of in rows:
        if state == "skipped" and schedule_id is not None and plan_time is not None and retry_of is None:
            skips.append((str(schedule_id), kind, name, str(id), job))
    if skips:
        await tx.fetch("note_skips", skips)
        await tx.fetch("mark_surplus", sorted({skip[:3] for skip in skips}), keep=_SKIPS_KEPT)


def _ended(row: Row) -> Ended:
    return Ended(*row[1:5])


def _is_late(row: Row) -> bool:
    return is_late(str(row[0]), row[2])
