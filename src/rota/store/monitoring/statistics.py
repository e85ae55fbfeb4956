"""Statistics of jobs: counted runs, pruned or not, plus those that are not counted yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota.core.monitoring.statistics import (
    BEFORE_ALL_DAYS,
    Ended,
    Tally,
    bucket_size,
    by_day,
    days_kept,
    is_late,
    merged,
)
from rota.core.runs.claim import NIL_ID
from rota.store.databases.database import Row, Tx
from rota.store.ledger.occurrences import snapshot


async def fold(tx: Tx, dropped: Iterable[Row]) -> None:
    """Keep what counts of runs (job, the fields of `Ended`, id) in the transaction that deletes them."""
    runs: dict[str, list[Row]] = {}
    for job, *facts in dropped:
        runs.setdefault(job, []).append(facts)
    for job in sorted(runs):
        await lock(tx, job)
        await add(tx, job, await _uncounted(tx, job, runs[job]))


async def _uncounted(tx: Tx, job: str, rows: Sequence[Row]) -> list[Ended]:
    """Return those of the deleted runs that were not counted before."""
    noted = {str(id) for (id,) in await tx.fetch("forget_uncounted", [(job, str(row[-1])) for row in rows])}
    mark = await mark_of(tx, job)
    ids = [(str(row[-1]), row) for row in rows]
    return [Ended(*row[:-1]) for id, row in ids if id > mark or id in noted or is_late(id, row[1])]


async def lock(tx: Tx, job: str) -> None:
    """Lock a job's statistics, so that processes count its runs one after the other."""
    await tx.fetch("lock_stats", job=job, day=BEFORE_ALL_DAYS)


async def mark_of(tx: Tx, job: str) -> str:
    rows = await tx.fetch("get_mark", job=job)
    return str(rows[0][0]) if rows else NIL_ID


async def add(tx: Tx, job: str, runs: Iterable[Ended]) -> None:
    """Count these runs. The caller holds the job's lock."""
    more = by_day(runs)
    if not more:
        return
    there = {int(day) for (day,) in await tx.fetch("stats_days", job=job)}
    kept = days_kept({*there, *more})
    outdated = there - kept - {BEFORE_ALL_DAYS}
    changed = {day if day in kept else BEFORE_ALL_DAYS for day in {*more, *outdated}}
    rows = await tx.fetch("stats_of_days", [(job, day) for day in sorted(there & {*changed, *outdated})])
    parts: dict[int, list[Tally]] = {day: [] for day in changed}
    for day, tally in [*((int(day), _tally(text)) for day, text in rows), *more.items()]:
        parts[day if day in kept else BEFORE_ALL_DAYS].append(tally)
    await tx.fetch("save_stats", [(job, day, _text(merged(parts[day]))) for day in sorted(changed)])
    if outdated:
        await tx.fetch("drop_stats", [(job, day) for day in sorted(outdated)])


async def tally(tx: Tx, job: str) -> Tally:
    """Return the tally of all runs of the job that ever ended. How the last one ended is known of counted runs only."""
    await snapshot(tx)  # a run that is being counted or pruned counts once
    rows = await tx.fetch("job_counts", job=job, mark=await mark_of(tx, job))
    return merged(_tally(row[-1]) if row[-1] else _group(row) for row in rows)


async def counted_tally(tx: Tx, job: str) -> Tally:
    return merged(_tally(text) for (text,) in await tx.fetch("stats_of_job", job=job))


def _group(row: Row) -> Tally:
    """Build the tally of runs of one state and one bucket of durations."""
    state, digits, head, count, busy, first_at, began_at, _ = row
    return Tally(
        states={state: count},
        durations={} if digits is None else {int(head) * bucket_size(digits): count},
        timed=0 if digits is None else count,
        busy=int(busy or 0),
        first_at=first_at,
        began_at=began_at,
    )


def _tally(text: str) -> Tally:
    return msgspec.json.decode(text, type=Tally)


def _text(tally: Tally) -> str:
    return msgspec.json.encode(tally).decode()
