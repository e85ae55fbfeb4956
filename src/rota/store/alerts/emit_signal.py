"""Signals tell the messenger of ended runs and missed plan times. They are written in the transaction of the event."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.planning.catch_up import Gap
from rota.store.databases.database import Tx
from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.instants import instant

MESSENGER = "\x01messenger"
"""The name under which the messenger is notified, as if it were a queue. No queue can have this name."""


async def tell(tx: Tx, ended: Sequence[str]) -> bool:
    """Write a signal for each ended run whose job somebody listens to. Return whether there are any."""
    return bool(await tx.fetch("signal_ends", [(id,) for id in ended])) if ended else False


async def telling(tx: Tx, ended: Sequence[str], queues: set[str]) -> None:
    """Like `tell`, but add the messenger to the `queues` to notify."""
    if await tell(tx, ended):
        queues.add(MESSENGER)


async def tell_missed(tx: Tx, missed: Sequence[tuple[ScheduleRow, Gap]], queues: set[str]) -> None:
    """Write signals for plan times that got no run, and add the messenger to the `queues` to notify.

    Only for schedules whose job somebody listens to.
    """
    rows = [(row.name, row.definition.job, _details(gap)) for row, gap in missed]
    if rows and await tx.fetch("signal_missed", rows):
        queues.add(MESSENGER)


def _details(gap: Gap) -> str:
    details = {"count": gap.count, "from": instant(gap.from_at), "to": instant(gap.to_at), "reason": gap.reason}
    return msgspec.json.encode(details).decode()
