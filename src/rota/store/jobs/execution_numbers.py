"""Numbers of a job's runs, which pruning does not change: how many were pruned before each that is kept."""

from __future__ import annotations

from bisect import bisect, insort
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from threading import Lock

from rota.core.monitoring.statistics import countable_until
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.store.databases.database import Tx
from rota.values.ids import last_id_of, milliseconds_of

_JOBS, _OF_A_JOB = 1_000, 100


async def keep(tx: Tx, dropped: Iterable[tuple[str, str]]) -> None:
    """Count runs (job, id) that are deleted in this transaction for those after them.

    The caller has the locks of the jobs' statistics, so that no two count runs of one job at once.
    """
    ids: dict[str, list[str]] = {}
    for job, id in dropped:
        ids.setdefault(job, []).append(id)
    for job in sorted(ids):
        # A run that no other follows counts for those that are yet to come, by its own id.
        followers = await tx.fetch("next_kept", [(id,) for id in ids[job]], job=job)
        counts = Counter(str(follower if follower is not None else id) for id, follower in followers)
        await tx.fetch("note_pruned", sorted(counts.items()), job=job)
        await _merge(tx, job)


async def _merge(tx: Tx, job: str) -> None:
    """Make one row of all that were pruned before the first run that is kept: mostly there is no other row."""
    ((first,),) = await tx.fetch("first_kept", job=job) or [(LAST_ID,)]
    merged = sum(int(runs) for (runs,) in await tx.fetch("forget_pruned", job=job, nil=NIL_ID, first=str(first)))
    if merged:
        await tx.fetch("note_pruned", [(NIL_ID, merged)], job=job)


class Numbers:
    """Tells numbers, and counts from the nearest run whose number it knows: to count all runs of a job takes long.

    A run that is still there keeps its number, whatever is pruned. Only runs that are old enough are remembered:
    transactions that have not ended yet may add younger ones between others.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[str, int]]] = {}
        self._lock = Lock()  # on SQLite, each connection that reads has a thread of its own

    async def tell(self, tx: Tx, job: str, ids: Collection[str]) -> dict[str, int]:
        """Return the numbers of these runs of the job, among all that it ever had: pruned ones count, too."""
        first, last = min(ids), max(ids)
        ((now,),) = await tx.fetch("now")
        until = min(first, last_id_of(countable_until(int(now))))
        start, number = NIL_ID, 0
        for (id,) in await tx.fetch("newest_until", job=job, until=until):
            start, number = str(id), await self._number(tx, job, str(id))
            self._remember(job, start, number)
        found = [str(id) for (id,) in await tx.fetch("ids_of_job_between", job=job, first=first, last=last)]
        pruned = await _pruned(tx, job, start, last)
        number += await _kept(tx, job, start, first) - 1  # the first of them is counted by its place, too
        return {
            id: number + place + sum(pruned[up_to] for up_to in pruned if up_to <= id)
            for place, id in enumerate(found, 1)
        }

    async def _number(self, tx: Tx, job: str, id: str) -> int:
        """Return the number of a run that is there."""
        with self._lock:
            known = self._known.get(job, [])
            place = bisect(known, (id, 0))
            around = known[max(0, place - 1) : place + 1]
        for other, number in sorted(around, key=lambda one: abs(milliseconds_of(one[0]) - milliseconds_of(id))):
            if other == id:
                return number
            if await tx.fetch("is_kept", id=other):
                between = await _span(tx, job, *sorted([other, id]))
                return number + between if other < id else number - between
            self._forget(job, other, number)
        return await _span(tx, job, NIL_ID, id)

    def _remember(self, job: str, id: str, number: int) -> None:
        with self._lock:
            known = self._known.pop(job, [])
            self._known[job] = known  # the last one that was asked about
            if (id, number) not in known:
                insort(known, (id, number))
            del known[: max(0, len(known) - _OF_A_JOB)]
            if len(self._known) > _JOBS:
                del self._known[next(iter(self._known))]

    def _forget(self, job: str, id: str, number: int) -> None:
        """Forget a run that was pruned, unless somebody who asked at the same time did."""
        with self._lock, suppress(ValueError):
            self._known.get(job, []).remove((id, number))


async def _span(tx: Tx, job: str, after: str, last: str) -> int:
    """Count runs after one, up to another, those that were pruned, too."""
    return await _kept(tx, job, after, last) + sum((await _pruned(tx, job, after, last)).values())


async def _kept(tx: Tx, job: str, after: str, last: str) -> int:
    ((count,),) = await tx.fetch("count_between", job=job, after=after, last=last)
    return int(count)


async def _pruned(tx: Tx, job: str, after: str, last: str) -> dict[str, int]:
    """Return how many were pruned before runs after that one; the row of the smallest id is of those before all."""
    rows = await tx.fetch("pruned_runs", job=job, after=after, last=last)
    pruned = {str(up_to): int(runs) for up_to, runs in rows}
    if after != NIL_ID:
        pruned.pop(after, None)
    return pruned
