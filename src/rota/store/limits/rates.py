"""Rates: how many may begin now under a limit with a period, what has begun, and when it opens again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.store.databases.database import Row, Tx

SHUT_FOR_A_WHILE = 3
# Each claim drops more old rows than it adds, so that they do not pile up, and never all of them at once.
_MORE_THAN_FREE = 500


class Allowed(msgspec.Struct, frozen=True):
    """Row of a limit: so many at once, or so many within a period (µs)."""

    max: int
    period: int | None = None


class Counted(msgspec.Struct, frozen=True):
    """A rate as it was found, its row being locked, at an instant of the database's clock."""

    at: int
    period: int
    free: int


def allowed(rows: Sequence[Row]) -> dict[str, Allowed]:
    """Return what limits allow, from rows of a key, a maximum and a period."""
    return {key: Allowed(int(most), period) for key, most, period in rows}


async def count(tx: Tx, limits: Mapping[str, Allowed]) -> dict[str, Counted]:
    """Count the rates among these limits. What began counts for one period, whichever way it lies from now: no span of
    that length has more than the maximum, also if the clock was set back by less.

    After a clock was set back by more, what is further ahead than that is taken to have begun just now.
    """
    periods = {key: limit.period for key, limit in limits.items() if limit.period is not None}
    if not periods:
        return {}
    counted: dict[str, Counted] = {}
    for key, now, within, ahead in await tx.fetch("begun_within", sorted(periods.items())):
        if ahead:
            await _bring_back(tx, key, int(now), periods[key])
        counted[key] = Counted(int(now), periods[key], limits[key].max - int(within) - int(ahead))
    return counted


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
        await tx.fetch("forget_begun", [(key,) for key, *_ in rows], limit=len(rows) + _MORE_THAN_FREE)


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
            keys += [(other,) for (other,) in await tx.fetch("unblock_limits", key=key, count=rate.free)]
            # More are blocked than have a place: without another time to open, nobody would look at the rest.
            if await tx.fetch("any_blocked", key=key):
                to_shut[key] = rate
    if to_shut:
        at = await opening(tx, to_shut)
        rows = [(key, _shut(shut[key], rate), None, 0, at[key]) for key, rate in sorted(to_shut.items())]
        await tx.fetch("shut_limits", rows)
    return await wake_queues_under(tx, keys) if keys else False


def _shut(shut: int, rate: Counted) -> int | None:
    return SHUT_FOR_A_WHILE if shut == SHUT_FOR_A_WHILE and rate.free <= 0 else None


async def wake_queues_under(tx: Tx, keys: Sequence[Row]) -> bool:
    """Wake the first and the last queue of the runs that wait under each of these limits; False if none waits.

    A limit has mostly one queue; whoever of a third one is not hinted to finds its runs by polling.
    """
    queues = {queue for pair in await tx.fetch("queues_under", keys) for queue in pair if queue is not None}
    tx.wake(*queues)
    return bool(queues)
