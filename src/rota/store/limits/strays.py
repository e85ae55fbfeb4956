"""Strays: what fell between two transactions, found in turn and put right. Limits, slots, and runs that wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec

from rota.core.limits.limits import ANY_RANK
from rota.core.runs.claim import NIL_ID
from rota.store.databases.database import Row, Tx
from rota.store.databases.pinned_plans import last_of, walk_indexes
from rota.store.limits import slots
from rota.store.runs import waits
from rota.store.runs.end import release
from rota.values.durations import in_micros

_ANY_PLACE = -1
_BATCH = 500
_LIMITS = 1_000  # at a time: a run may wait for the look at one of them
_REMEMBERED = 10_000
_UNUSED = in_micros(timedelta(minutes=1))


class SweepPosition(msgspec.Struct, frozen=True):
    """Position of a look for strays in each of the tables that it goes through."""

    gates: str = NIL_ID
    limits: str = ""
    awaited: str = NIL_ID
    waiting: str = NIL_ID


START = SweepPosition()


class Strays(msgspec.Struct, frozen=True):
    """Rows that fell between two transactions, or were left by somebody who did not know of them.

    `looked_to`: very many may wait, so they are looked at in turn; the next look goes on from there.
    """

    ended: list[str]
    again: list[tuple[str, int]]
    forgotten: list[Row]
    unused: list[Row]
    awaited: dict[str, str | None]
    idle: list[str]
    looked_to: SweepPosition

    def __bool__(self) -> bool:
        return any((self.ended, self.again, self.forgotten, self.unused, self.awaited, self.idle))


class ShutLimits:
    """Limits that this process has shut because nobody waited. An enqueue that was not yet seen would wait until it is
    their turn; so they are looked at next, and once more in case it was slow to commit."""

    def __init__(self) -> None:
        self._new: set[str] = set()
        self._looked_at_once: set[str] = set()

    def add(self, keys: Iterable[str]) -> None:
        if len(self._new) < _REMEMBERED:  # where nobody looks, they do not pile up
            self._new.update(keys)

    def next(self) -> list[Row]:
        keys = sorted(self._new | self._looked_at_once)
        self._new, self._looked_at_once = set(), self._new
        return [(key,) for key in keys]


async def look_astray(tx: Tx, after: SweepPosition = START, emptied: Sequence[Row] = ()) -> Strays:
    # Pinned plans: mostly there are no strays, and by its statistics PostgreSQL would read whole tables to find none.
    await walk_indexes(tx)
    emptied_too_soon = {key for (key,) in await tx.fetch("emptied_too_soon", emptied)} if emptied else set()
    held = await tx.fetch("stale_gates", limit=_BATCH)
    gates = await tx.fetch("gates_after", after=after.gates, limit=_BATCH)
    limits = await tx.fetch("limits_after", after=after.limits, limit=_LIMITS, idle=_UNUSED)
    awaited = await tx.fetch("awaited_after", after=after.awaited, limit=_BATCH)
    waiting = await tx.fetch("waiting_after", after=after.waiting, limit=_BATCH)
    ended = {str(id) for id, _, live in held if not live} | {str(id) for id, live in gates if not live}
    return Strays(
        ended=sorted(ended),
        again=sorted({(str(id), fence) for id, fence, live in held if live}),
        forgotten=[(key,) for key in sorted(emptied_too_soon | {key for key, forgotten, _ in limits if forgotten})],
        unused=[(key,) for key, _, unused in limits if unused],
        awaited={str(id): state for id, state, ended in awaited if ended},
        idle=[str(id) for id, awaits in waiting if not awaits],
        looked_to=SweepPosition(
            last_of(gates, _BATCH) or START.gates,
            last_of(limits, _LIMITS) or START.limits,
            last_of(awaited, _BATCH) or START.awaited,
            last_of(waiting, _BATCH) or START.waiting,
        ),
    )


async def tidy(tx: Tx, strays: Strays) -> None:
    """Put right what is astray."""
    # They were found in an earlier snapshot: gates are left by their fence, so a claim that came since keeps its slot.
    freed = await slots.leave(tx, ended=strays.ended, again=strays.again)
    await slots.open_limits(tx, [*freed, *((key, _ANY_PLACE, ANY_RANK) for (key,) in strays.forgotten)])
    if strays.awaited:
        await release(tx, strays.awaited)
    if strays.idle:
        await waits.go_on(tx, strays.idle, takers=strays.idle)
    if strays.unused:  # last: whoever waits for a limit that goes does not wait for all that
        # First what has begun under them: `drop_limits` keeps a limit under which any such row is left.
        await tx.fetch("forget_begun", strays.unused, limit=_BATCH * _BATCH)
        await tx.fetch("drop_limits", strays.unused)
