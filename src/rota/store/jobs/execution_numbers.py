"""Numbers of a job's runs, which pruning does not change: how many were pruned before each that is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.store.databases.database import Tx


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
