"""Retention: finished runs beyond what their job keeps, keys nobody holds, workers long silent."""

from __future__ import annotations

from datetime import timedelta

from rota.core.model import Retention
from rota.durations import in_micros
from rota.store.database import Tx

_BITE = 1_000
_SILENCE = timedelta(days=1)


async def jobs_with_runs(tx: Tx) -> list[str]:
    return [row[0] for row in await tx.fetch("jobs_with_runs")]


async def prune_job(tx: Tx, job: str, retention: Retention) -> int:
    """One bite: the number of runs deleted; fewer than a full bite means that the job is done."""
    newest = await tx.fetch("newest_kept", job=job, keep=retention.keep)
    if not newest:
        return 0
    old = await tx.fetch("prunable", job=job, newest=newest[0][0], keep_for=in_micros(retention.keep_for), limit=_BITE)
    if old:
        await tx.fetch("drop_attempts", [(row[0],) for row in old])
        await tx.fetch("drop_runs", [(row[0],) for row in old])
    return len(old)


async def prune_keys(tx: Tx) -> int:
    """One bite. Before the runs: a job that is not repeatable gets its key back while its run says that it failed."""
    return len(await tx.fetch("drop_stale_keys", limit=_BITE))


async def prune_workers(tx: Tx) -> None:
    await tx.fetch("drop_silent_workers", silence=in_micros(_SILENCE))


def is_full_bite(count: int) -> bool:
    return count >= _BITE
