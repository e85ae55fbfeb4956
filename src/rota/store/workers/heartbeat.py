"""Heartbeats of workers: renew their leases, and look whether the database is still where it was."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.workers.worker import WorkerInfo
from rota.store.databases.database import Tx
from rota.store.databases.epoch import Standing
from rota.store.workers.workers import save_worker


class Extended(msgspec.Struct, frozen=True):
    """Result of a heartbeat: leases that are gone, runs asked to stop, and what operators ask of the worker."""

    lost: set[str]
    cancelling: set[str]
    asked: str | None = None


async def extend(
    tx: Tx, worker: WorkerInfo, held: Sequence[tuple[str, int]], lease: int, standing: Standing
) -> Extended:
    """Renew a worker's leases, given as (run, fence), and its own sign of life."""
    await _compare(tx, standing)
    command = await save_worker(tx, worker)
    if not held:
        return Extended(set(), set(), command)
    # By id and fence: a lease that somebody else got after this one expired must not be renewed by its former holder.
    renewed = {str(id): bool(cancelling) for id, cancelling in await tx.fetch("extend", held, lease=lease)}
    missing = [(id, fence) for id, fence in held if id not in renewed]
    if missing:  # another database may have come between the two statements: whose runs are lost is told then
        await _compare(tx, standing)
    # A lease skipped because a completion holds its row is not lost.
    alive = {str(id) for (id,) in await tx.fetch("still_leased", missing)} if missing else set()
    return Extended(
        {id for id, _ in missing if id not in alive},
        {id for id, cancelling in renewed.items() if cancelling},
        command,
    )


async def _compare(tx: Tx, standing: Standing) -> None:
    """Look where the database is: behind connections that stay, it may have become another one."""
    if standing.place is not None:
        standing.compare(*(await tx.fetch("place"))[0])
