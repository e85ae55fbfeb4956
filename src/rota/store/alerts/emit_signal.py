"""Signals tell the messenger of ended runs and missed plan times. They are written in the transaction of the event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from rota.core.planning.catch_up import Gap
from rota.store.databases.database import Tx

if TYPE_CHECKING:
    from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.instants import instant

MESSENGER = "\x01messenger"
"""The name under which the messenger is notified, as if it were a queue. No queue can have this name."""


async def tell(tx: Tx, ended: Sequence[str]) -> None:
    """Write a signal for each of these ended runs whose job somebody listens to, and wake the messenger if any is."""
    if ended and await tx.fetch("signal_ends", [(id,) for id in ended]):
        tx.wake(MESSENGER)


async def tell_missed(tx: Tx, missed: Sequence[tuple[ScheduleRow, Gap]]) -> None:
    """Write signals for plan times that got no run, of schedules whose job somebody listens to."""
    rows = [(row.name, row.definition.job, _details(gap)) for row, gap in missed]
    if rows and await tx.fetch("signal_missed", rows):
        tx.wake(MESSENGER)


def _details(gap: Gap) -> str:
    details = {"count": gap.count, "from": instant(gap.from_at), "to": instant(gap.to_at), "reason": gap.reason}
    return msgspec.json.encode(details).decode()
