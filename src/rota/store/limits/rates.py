"""Rates: how many may begin now under a limit with a period, what has begun, and when it opens again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.core.limits.turns import Allowed, KeyHead, Room, Shut, in_turn
from rota.store.databases.database import Row, Tx

# Each claim drops more old rows than it adds, so that they do not pile up, and never all of them at once.
_MORE_THAN_FREE = 500
# Limits that a wider one blocks: so many more than it has room for are compared, or passed over because nobody waits.
_COMPARED = 100


class Counted(msgspec.Struct, frozen=True):
    """A rate as it was found, its row being locked, at an instant of the database's clock. `stale`: some of what is
    noted counts no more."""

    at: int
    period: int
    free: int
    stale: bool = False


def allowed(rows: Sequence[Row]) -> dict[str, Allowed]:
    """Return what limits allow, from rows of a key, a maximum and a period."""
    return {key: Allowed(int(most), period) for key, most, period in rows}


async def count(tx: Tx, limits: Mapping[str, Allowed]) -> dict[str, Counted]:
    """Count the rates among these limits. What began counts for one period, whichever way it lies from now: no span of
    that length has more than the maximum, also if the clock was set back by less.

    After a clock was set back by more, what is further ahead than that is taken to have begun just now.
    """
    periods = {key: limit for key, limit in limits.items() if limit.period is not None}
    return await counted(tx, periods, await room(tx, periods)) if periods else {}


async def room(tx: Tx, limits: Mapping[str, Allowed]) -> dict[str, Room]:
    """Count what is free under limits, of both kinds, whose rows are locked."""
    # A statement of its own, after the lock: an older snapshot would not see what the last holder of it took.
    rows = await tx.fetch("in_use", [(key, limit.max, limit.period) for key, limit in sorted(limits.items())])
    return {key: Room(int(free), int(now), int(ahead), bool(stale)) for key, now, free, ahead, stale in rows}


async def counted(tx: Tx, limits: Mapping[str, Allowed], rooms: Mapping[str, Room]) -> dict[str, Counted]:
    """Return the rates among these limits as they were counted."""
    rates: dict[str, Counted] = {}
    for key, limit in limits.items():
        if limit.period is None:
            continue
        found = rooms[key]
        if found.ahead:
            await _bring_back(tx, key, found.at, limit.period)
        rates[key] = Counted(found.at, limit.period, found.free, found.stale or found.ahead > 0)
    return rates


async def _bring_back(tx: Tx, key: str, now: int, period: int) -> None:
    ahead = await tx.fetch("begun_ahead", key=key, now_at=now, period=period)
    await tx.fetch("put_begun", key=key, at=now, count=sum(count for (count,) in ahead))


async def note(tx: Tx, begun: Mapping[str, int], counted: Mapping[str, Counted], run_id: str) -> None:
    """Note that so many have begun under each limit, together with this run. What counts no more goes, some of it with
    each claim; but not before a second period is over, during which the clock may be set back.
    """
    rows = [(key, run_id, counted[key].at, count) for key, count in sorted(begun.items()) if key in counted]
    if rows:
        await tx.fetch("note_begun", rows)
        stale = [(key,) for key, *_ in rows if counted[key].stale]
        if stale:
            await tx.fetch("forget_begun", stale, limit=len(stale) + _MORE_THAN_FREE)


async def opening(tx: Tx, full: Mapping[str, Counted]) -> dict[str, int]:
    """Return when each of these has a place again: the first that counts then counts no more."""
    rows = [(key, rate.at - rate.period) for key, rate in sorted(full.items())]
    first = {key: int(at) for key, at in await tx.fetch("first_begun", rows)} if rows else {}
    return {key: first.get(key, rate.at) + rate.period for key, rate in full.items()}


async def open_due(tx: Tx, limit: int) -> bool:
    """Open rates that have a place again, so that who waits under them may go on; return whether any queue was woken.

    Of those that they block, as many as there are places; if more are left, they are seen to at the next such time.
    """
    # Locked in the order in which they open, not of keys: what somebody else holds is skipped, so this cannot deadlock.
    # A claim that holds a rate opens or shuts it itself.
    due = await tx.fetch("due_rates", limit=limit)
    counted = await count(tx, allowed([(key, most, period) for key, most, period, _ in due]))
    shut = {key: int(state) for key, _, _, state in due}
    keys = [(key,) for key in shut]
    to_shut = {key: rate for key, rate in counted.items() if rate.free <= 0}
    # Opened before it is shut again below: the former clears `opens_at`, and the latter sets the next time.
    if keys:
        await tx.fetch("open_rates", keys)
    for key, rate in counted.items():
        if rate.free > 0:
            keys += await unblock(tx, key, rate.free)
            # More are blocked than have a place: without another time to open, nobody would look at the rest.
            if await tx.fetch("any_blocked", key=key):
                to_shut[key] = rate
    if to_shut:
        at = await opening(tx, to_shut)
        rows = [(key, _shut(shut[key], rate), None, 0, at[key]) for key, rate in sorted(to_shut.items())]
        await tx.fetch("shut_limits", rows)
    return await wake_queues_under(tx, keys) if keys else False


async def unblock(tx: Tx, key: str, count: int) -> list[tuple[str]]:
    """Open the next limits that wait for this one, as many as it has room for; return their keys.

    The next ones are those that a claim would serve first. Those under which nobody waits any more are opened, too: a
    slot that is kept for nobody would be lost until another one is free.
    """
    opened: list[tuple[str]] = []
    while True:
        most = count + _COMPARED
        rows = await tx.fetch("blocked_limits", key=key, most=most)
        heads = [KeyHead(name, rank or 0, run_at or 0, id and str(id)) for name, rank, run_at, id in rows]
        waiting = in_turn(heads)[:count]
        chosen = [(head.key,) for head in heads if head.run_id is None] + [(name,) for name in waiting]
        if chosen:
            await tx.fetch("unblock_limits", sorted(chosen))
        opened += chosen
        count -= len(waiting)
        # So many of them had nobody who waits that some may not have been seen who do.
        if not count or len(rows) < most:
            return opened


def _shut(shut: int, rate: Counted) -> int | None:
    return Shut.FOR_A_WHILE if shut == Shut.FOR_A_WHILE and rate.free <= 0 else None


async def wake_queues_under(tx: Tx, keys: Sequence[Row]) -> bool:
    """Wake the first and the last queue of the runs that wait under each of these limits; False if none waits.

    A limit has mostly one queue; whoever of a third one is not hinted to finds its runs by polling.
    """
    queues = {queue for pair in await tx.fetch("queues_under", keys) for queue in pair if queue is not None}
    tx.wake(*queues)
    return bool(queues)
