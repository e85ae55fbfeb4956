"""Pinned plans: statements walk along indexes, and stop after a bounded number of rows, however many wait.

PostgreSQL's planner guesses how many rows a condition leaves. If it expects one, to gather and sort all runs that wait
looks cheap: then each claim reads the whole queue. So it is given no choice, with what begins a transaction:

    WALKING         every transaction
    PINNED          every transaction that writes
    walk_indexes    from there on: questions that have an index in the order they ask for

What stays the planner's choice is which index, and which table first. So where it may know nothing of a table:

    1 = (select 1 … limit 1)    instead of `exists` beside an `or` or in a `case`: that may become a hash of the whole
                                table, which no setting forbids
    hold + 0 = {blocked}        of rows that are given by their ids: without the sum, an index on it looks short as
                                long as nobody has counted what is in it
    {then rota_run r | …}       instead of `join`: while a table looks empty, beginning with all of it looks cheap
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota.store.databases.database import Row, Tx
from rota.store.databases.statements import POSTGRES

# Compiling takes longer than any statement of ours should, and is begun because of a guess, too.
UNCOMPILED = "set local jit = off"
WALKING = "; ".join(
    [UNCOMPILED, *(f"set local enable_{way} = off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin"))]
)
# Generic: planning each execution anew costs more than the statement, and no value may lead to another plan.
PINNED = f"{WALKING}; set local plan_cache_mode = force_generic_plan"


async def walk_indexes(tx: Tx, *, in_order: bool = False) -> None:
    """PostgreSQL's statistics know little of the newest rows, of which there may be a million: it would expect a few,
    gather and sort them all, or read whole tables to join them. For the rest of this transaction it does not.

    `in_order`: not even sort, in a question that has an index in the order it asks for. Any other would rather walk the
    whole index that has its order than sort a few rows.
    """
    if tx.dialect is POSTGRES:
        await tx.script(f"{WALKING}; set local enable_sort = off" if in_order else WALKING)


class Turn(msgspec.Struct, frozen=True):
    """Result of a look that goes through a table in turn, a bite at a time. `last`: where the next one goes on; None:
    it has come to the end, and the next one begins anew."""

    found: list[Row]
    last: str | None


def turn(rows: Sequence[Row], limit: int, found: Iterable[Row]) -> Turn:
    """`rows` are the whole bite, each beginning with its key; `found` are those of them that something is to be done
    about. To ask for these alone would walk on until there are enough of them: nobody knows how far that is."""
    return Turn(list(found), last_of(rows, limit))


def last_of(rows: Sequence[Row], limit: int) -> str | None:
    """Return the key that the last row begins with, if there may be more rows."""
    if len(rows) < limit:
        return None
    key, *_ = rows[-1]
    return str(key)
