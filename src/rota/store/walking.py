"""Questions that walk along an index and stop after a bounded number of rows."""

from __future__ import annotations

from rota.store.database import Tx
from rota.store.statements import POSTGRES

_OTHER_WAYS = ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort")


async def walk_indexes(tx: Tx) -> None:
    """PostgreSQL's statistics know little of the newest rows, of which there may be a million: it would expect a few,
    gather and sort them all, or read whole tables to join them. For the rest of this transaction it does not."""
    if tx.dialect is POSTGRES:
        await tx.script("; ".join(f"set local enable_{way} = off" for way in _OTHER_WAYS))
