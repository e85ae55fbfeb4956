"""Due work: one look for all loops of a process, at what is due for each of them."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from rota.store.databases.database import Database, Tx
from rota.store.jobs.data_jobs import Seen
from rota.values.clock import compare, id_clock


class DueWork(msgspec.Struct, frozen=True):
    """Time until each loop has something to do, in microseconds; None: not before somebody writes.

    0 also stands for "there is something that it has to watch". `now`: the database's time.
    """

    now: int
    planner: int | None
    promoter: int | None
    conductor: int | None
    messenger: int | None
    reaper: int | None
    watchman: int | None
    worker: int | None
    notifications: bool
    data_jobs: Seen


class DueWorkStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def is_told(self) -> bool:
        """Return whether others' hints arrive, so that nobody has to look all the time."""
        return self._database.hears

    async def look(self, queues: Collection[str], providers: Collection[str]) -> DueWork:
        """Look what is due for a worker of these queues and for the loops, by the questions that they ask themselves.

        The answer also proves that hints arrive.
        """
        before = id_clock()
        work = await self._database.heed(lambda tx: _look(tx, queues, providers))
        compare(self._database.clock, before, work.now)
        return work


async def _look(tx: Tx, queues: Collection[str], providers: Collection[str]) -> DueWork:
    ((plan_at, now, _),) = await tx.fetch("look", [(name,) for name in providers], followers=0)
    ((due_in, _, opens_in),) = await tx.fetch("next_due")
    ((conduct_in, looks, conducts),) = await tx.fetch("work_to_conduct")
    ((signals, notifications, digests),) = await tx.fetch("anything_to_tell")
    ((under_way, expected, awaited),) = await tx.fetch("under_way")
    ((ready,),) = await tx.fetch("anything_ready", [(queue,) for queue in queues]) if queues else ((0,),)
    ((count, dropped, last),) = await tx.fetch("data_jobs_seen") if queues else ((0, 0, 0),)
    return DueWork(
        now=int(now),
        planner=0 if awaited else None if plan_at is None else plan_at - now,
        promoter=min((delay for delay in (due_in, opens_in) if delay is not None), default=None),
        conductor=0 if looks or conducts else conduct_in,
        messenger=0 if signals or digests else None,
        reaper=0 if under_way or conducts else None,
        watchman=0 if expected else None,
        worker=0 if ready else None,
        notifications=bool(notifications),
        data_jobs=(count, dropped, last),
    )
