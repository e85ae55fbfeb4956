"""Statistics of jobs: counted from the runs that are there, and from what pruned ones left behind."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.core.statistics import BEFORE_ALL_DAYS, Ended, Tally, bucket_size, by_day, days_kept, merged
from rota.store.database import Row, Tx


async def fold(tx: Tx, dropped: Iterable[Row]) -> None:
    """Keep what counts of runs (job, and the fields of `Ended`) in the transaction that deletes them."""
    runs: dict[str, list[Ended]] = {}
    for job, *facts in dropped:
        runs.setdefault(job, []).append(Ended(*facts))
    for job in sorted(runs):
        await _fold_job(tx, job, by_day(runs[job]))


async def _fold_job(tx: Tx, job: str, gone: dict[int, Tally]) -> None:
    await tx.fetch("lock_stats", job=job, day=BEFORE_ALL_DAYS)
    there = {int(day) for (day,) in await tx.fetch("stats_days", job=job)}
    kept = days_kept({*there, *gone})
    outdated = there - kept - {BEFORE_ALL_DAYS}
    changed = {day if day in kept else BEFORE_ALL_DAYS for day in {*gone, *outdated}}
    rows = await tx.fetch("stats_of_days", [(job, day) for day in sorted(there & {*changed, *outdated})])
    parts: dict[int, list[Tally]] = {day: [] for day in changed}
    for day, tally in [*((int(day), _tally(text)) for day, text in rows), *gone.items()]:
        parts[day if day in kept else BEFORE_ALL_DAYS].append(tally)
    await tx.fetch("save_stats", [(job, day, _text(merged(parts[day]))) for day in sorted(changed)])
    if outdated:
        await tx.fetch("drop_stats", [(job, day) for day in sorted(outdated)])


async def tally(tx: Tx, job: str) -> Tally:
    """Of all runs of the job that ever ended. How the last one ended is told for pruned runs only."""
    return merged(_tally(row[-1]) if row[-1] else _group(row) for row in await tx.fetch("job_counts", job=job))


async def pruned_tally(tx: Tx, job: str) -> Tally:
    return merged(_tally(text) for (text,) in await tx.fetch("stats_of_job", job=job))


def _group(row: Row) -> Tally:
    """Runs of one state and one bucket."""
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
