"""Ends of runs that somebody listens for: a signal, in the transaction of the end, that the messenger takes up."""

from __future__ import annotations

from collections.abc import Sequence

from rota.store.database import Tx

MESSENGER = "\x01messenger"
"""Hints to it travel as those of a queue do."""


async def tell(tx: Tx, ended: Sequence[str]) -> bool:
    """Whether there is something to tell: nothing, unless somebody listens to the jobs of these runs."""
    return bool(await tx.fetch("signal_ends", [(id,) for id in ended])) if ended else False


async def telling(tx: Tx, ended: Sequence[str], queues: set[str]) -> None:
    """The same; the messenger is among the `queues` to hint to, then."""
    if await tell(tx, ended):
        queues.add(MESSENGER)
