"""Ends of runs that somebody listens for: a signal, in the transaction of the end, that the messenger takes up."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.planning.catch_up import Gap
from rota.store.databases.database import Tx
from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.instants import instant

MESSENGER = "\x01messenger"
"""Hints to it travel as those of a queue do."""


async def tell(tx: Tx, ended: Sequence[str]) -> bool:
    """Whether there is something to tell: nothing, unless somebody listens to the jobs of these runs."""
    return bool(await tx.fetch("signal_ends", [(id,) for id in ended])) if ended else False


async def telling(tx: Tx, ended: Sequence[str], queues: set[str]) -> None:
    """The same; the messenger is among the `queues` to hint to, then."""
    if await tell(tx, ended):
        queues.add(MESSENGER)


async def tell_missed(tx: Tx, missed: Sequence[tuple[ScheduleRow, Gap]], queues: set[str]) -> None:
    """Plan times that got no run, of schedules whose job somebody listens to; `queues` as above."""
    rows = [(row.name, row.definition.job, _told_gap(gap)) for row, gap in missed]
    if rows and await tx.fetch("signal_missed", rows):
        queues.add(MESSENGER)


def _told_gap(gap: Gap) -> str:
    told = {"count": gap.count, "from": instant(gap.from_at), "to": instant(gap.to_at), "reason": gap.reason}
    return msgspec.json.encode(told).decode()
