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


async def fold(tx: Tx, dropped: Iterable[Row]) -> None:
    """Keep what counts of runs (job, the fields of `Ended`, id) in the transaction that deletes them."""
    runs: dict[str, list[tuple[str, Ended]]] = {}
    for job, state, created_at, started_at, finished_at, id in dropped:
        runs.setdefault(job, []).append((str(id), Ended(state, created_at, started_at, finished_at)))
    for job in sorted(runs):  # one order for all who lock the statistics of several jobs, or they deadlock
        await lock(tx, job)
        await add(tx, job, await _uncounted(tx, job, runs[job]))


async def _uncounted(tx: Tx, job: str, runs: Sequence[tuple[str, Ended]]) -> list[Ended]:
    """Return those of the deleted runs that were not counted before."""
    noted = {str(id) for (id,) in await tx.fetch("forget_uncounted", [(job, id) for id, _ in runs])}
    mark = await mark_of(tx, job)
    return [ended for id, ended in runs if id > mark or id in noted or is_late(id, ended.created_at)]


async def lock(tx: Tx, job: str) -> None:
    """Lock a job's statistics, so that processes count its runs one after the other."""
    await tx.fetch("lock_stats", job=job, day=BEFORE_ALL_DAYS)


async def mark_of(tx: Tx, job: str) -> str:
    for (mark,) in await tx.fetch("get_mark", job=job):
        return str(mark)
    return NIL_ID


async def add(tx: Tx, job: str, runs: Iterable[Ended]) -> None:
    """Count these runs. The caller holds the job's lock."""
    new = by_day(runs)
    if not new:
        return
    stored = {int(day) for (day,) in await tx.fetch("stats_days", job=job)}
    recent = days_kept({*stored, *new})
    outdated = stored - recent - {BEFORE_ALL_DAYS}
    changed = {day if day in recent else BEFORE_ALL_DAYS for day in {*new, *outdated}}
    rows = await tx.fetch("stats_of_days", [(job, day) for day in sorted(stored & {*changed, *outdated})])
    parts: dict[int, list[Tally]] = {day: [] for day in changed}
    for day, tally in [*((int(day), _tally(text)) for day, text in rows), *new.items()]:
        parts[day if day in recent else BEFORE_ALL_DAYS].append(tally)
    await tx.fetch("save_stats", [(job, day, _text(merged(parts[day]))) for day in sorted(changed)])
    if outdated:
        await tx.fetch("drop_stats", [(job, day) for day in sorted(outdated)])


async def tallies(tx: Tx, jobs: Sequence[str]) -> dict[str, Tally]:
    """Return the tallies of all runs of these jobs that ever ended. How the last ended is known of counted runs only.

    The caller has begun a snapshot, so that a run that is being counted or pruned counts once.
    """
    parts: dict[str, list[Tally]] = {job: [] for job in jobs}
    for job, *group, text in await tx.fetch("job_counts", [(job,) for job in jobs], nil=NIL_ID) if jobs else ():
        parts[job].append(_tally(text) if text else _group(group))
    return {job: merged(tallies) for job, tallies in parts.items()}


async def tally_of_all(tx: Tx) -> Tally:
    """Return the tally of all runs of all jobs that ever ended, without asking for each job. The caller has begun a
    snapshot."""
    marks = [(job, str(mark)) for job, mark in await tx.fetch("marks_of_jobs", nil=NIL_ID)]
    rows = await tx.fetch("uncounted_of_jobs", marks) if marks else ()
    stored = [_tally(text) for (text,) in await tx.fetch("all_stats")]
    return merged([*stored, *(_group(row) for row in rows)])


async def counted_tallies(tx: Tx, jobs: Sequence[str]) -> dict[str, Tally]:
    """Return the tallies of the counted runs of several jobs; a job without any is left out."""
    parts: dict[str, list[Tally]] = {}
    for job, text in await tx.fetch("stats_of_jobs", [(job,) for job in jobs]) if jobs else ():
        parts.setdefault(job, []).append(_tally(text))
    return {job: merged(tallies) for job, tallies in parts.items()}


def _group(row: Row) -> Tally:
    """Build the tally of runs of one state and one bucket of durations."""
    state, digits, head, count, busy, first_at, began_at = row
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
