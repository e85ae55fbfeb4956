"""Slots: given out to the runs that wait under a limit, and given back when their leases end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.core.limits.limits import ANY_RANK
from rota.core.limits.turns import (
    Allowed,
    Candidate,
    KeyHead,
    LimitChange,
    SlotGrant,
    changes,
    cut_short,
    further,
    hand_out,
    in_turn,
    last_looked_at,
    may_be_passed,
)
from rota.core.runs.claim import END, PLAIN, SUSPECTS, Claim, LimitedRequest, Position, WaitingRun
from rota.store.databases.database import COMPARED, Row, Tx, keys_compared
from rota.store.limits import rates
from rota.store.limits.rates import Counted, allowed
from rota.store.workers import replicas

# More limits than slots are locked: some turn out to be full or empty, and the claim should not come back with nothing.
_MORE_KEYS = 16
# Looks of one claim at open limits, each beyond what it found out about those of the one before.
_LOOKS = 8


class LimitedClaims(msgspec.Struct, frozen=True):
    """Result of a claim of limited runs; `waiting`: there was one, or a limit to see to.

    `left`: a limit may be open under which more wait. `shut`: a rate is, until its time comes. `emptied`: limits that
    it shut because nobody waits under them, as far as it could see: an enqueue may have been under way. `held_up`: the
    next run must begin at once, and no slot of the worker is free for it.
    """

    claims: list[Claim]
    waiting: bool
    left: bool = True
    shut: bool = False
    emptied: tuple[str, ...] = ()
    held_up: bool = False


def positions(heads: Sequence[KeyHead]) -> list[Position]:
    """Return where the first runs under these keys are in the one order of all kinds of runs."""
    return [Position(head.rank, head.run_at, 1, head.run_id) for head in heads if head.run_id is not None]


async def claim(tx: Tx, request: LimitedRequest, open_keys: Sequence[KeyHead] | None = None) -> LimitedClaims:
    """Key first: lock a few limits, count their slots, take as many of their runs as are free.

    Every lock is taken only if nobody else has it, so that claims do not wait, and cannot deadlock; but for a limit
    that has to be made, and is being made by somebody else.
    """
    corrected: list[str] = []
    if open_keys is None:
        open_keys = await look_further(tx, request, await tx.hot.open_keys(request), corrected)
    found = open_keys
    # A worker without a free slot only asks whether anything waits.
    if not found or not request.slots:
        return LimitedClaims([], bool(found), emptied=(*corrected,))
    keys = await _lock(tx, found, min(request.slots, COMPARED) + _MORE_KEYS, request.before)
    # One look has a snapshot from after the locks: an older one would not see what the last holder of them took.
    first = await tx.hot.counted_candidates(request, keys)
    counted = await rates.counted(tx, keys, first.room)
    free = {key: room.free for key, room in first.room.items()}
    slots_by_key = {key: min(free[key], request.slots) for key in keys if free[key] > 0}
    opened: set[str] = set()
    waiting = await _candidates(tx, request, first.runs, opened)
    handed = await _hand_out(tx, request, keys, waiting, free, counted)
    if cut_short(first.asked, slots_by_key, waiting, handed, request.slots):
        waiting = await _candidates(tx, request, await tx.hot.candidates(request, slots_by_key), opened)
        handed = await _hand_out(tx, request, keys, waiting, free, counted)
    full = {key: rate for key, rate in counted.items() if handed.left[key] <= 0}
    emptied = await _emptied(tx, keys, waiting, handed)
    # When a rate that is full opens again is known once these have begun.
    with_it = [] if full else changes(handed, {}, emptied)
    claims: list[Claim] = []
    if handed.taken:
        # Only those that it takes: one that is given to its name and not taken would keep it from the others of the
        # parent.
        await replicas.give(tx, opened & {candidate.run_id for candidate in handed.taken}, request.name)
        claims = await tx.hot.take_limited(request, [candidate.run_id for candidate in handed.taken], with_it)
    if claims and counted:
        begun = Counter(key for candidate in handed.taken for key in (candidate.key, *candidate.wider))
        # The time of one lease stands for all: every lease of a claim begins at the same instant.
        await rates.note(tx, begun, counted, claims[0].run_id)
    if full or not handed.taken:
        await change(tx, changes(handed, await rates.opening(tx, full), emptied))
    left = {head.key for head in found}.difference(handed.full, handed.blocked, emptied)
    return LimitedClaims(claims, True, bool(left), bool(full), (*corrected, *emptied), handed.held_up)


async def look_further(
    tx: Tx, request: LimitedRequest, heads: Sequence[KeyHead], corrected: list[str]
) -> Sequence[KeyHead]:
    """Look at more open limits while one that was not seen may have a run of a higher priority.

    That is so if limits that were seen have less to give than their rows say: those are `corrected`. An enqueue under
    one of them may be under way, and trust the row as it was; so they are to be looked at again, as emptied ones.

    If others are at them, or their first runs are not for this worker, it looks at those behind them, too.
    """
    page = heads
    for _ in range(_LOOKS):
        if not may_be_passed(heads, page, keys_compared(request.slots)):
            break
        keys = await shut_empty(tx, [head for head in page if head.run_id is None])
        keys += await _raise_ranks(tx, [head for head in page if head.run_id is not None])
        if keys:
            corrected += keys
            heads = page = await tx.hot.open_keys(request)
        elif len(request.queues) == 1:  # each queue has an order of its own
            page = await tx.hot.open_keys(request, last_looked_at(page))
            heads = further(heads, page)
        else:
            break
    return heads


async def _raise_ranks(tx: Tx, heads: Sequence[KeyHead]) -> tuple[str, ...]:
    """Set the ranks of limits under which the first run comes later than their rows say. Return their keys."""
    stale = [(head.key,) for head in sorted(heads, key=lambda head: head.key) if head.at_least < head.rank]
    locked = allowed(await tx.fetch("lock_open_limits", stale)) if stale else {}
    if not locked:
        return ()
    # A statement of its own, after the locks: an enqueue that held one of them has committed what it brought.
    known = {head.key: head.at_least for head in heads}
    ranks = await tx.fetch("first_ranks", [(key,) for key in locked])
    higher = [(key, int(rank)) for key, rank in ranks if rank is not None and rank > known[key]]
    if higher:
        await tx.fetch("raise_ranks", higher)
    return tuple(key for key, _ in higher)


async def _hand_out(
    tx: Tx,
    request: LimitedRequest,
    keys: Mapping[str, Allowed],
    waiting: dict[str, list[Candidate]],
    free: dict[str, int],
    counted: dict[str, Counted],
) -> SlotGrant:
    """Lock the wider limits of these runs, too, whose free slots `free` gets, and choose."""
    wider = {key for runs in waiting.values() for run in runs for key in run.wider} - free.keys()
    if wider:
        free.update(await _free(tx, await _lock_wider(tx, wider, waiting), counted))
    return hand_out({key: waiting.get(key, []) for key in keys}, free, request.slots, request.now, counted.keys())


async def shut_empty(tx: Tx, empty: Sequence[KeyHead]) -> tuple[str, ...]:
    """Shut those of these limits under which nobody waits; it needs no slot. Return their keys."""
    if not empty:
        return ()
    keys = await _lock(tx, empty, 0, END)
    nothing = SlotGrant([], set(), {})
    emptied = await _emptied(tx, keys, {}, nothing)
    await change(tx, changes(nothing, {}, emptied))
    return tuple(emptied)


async def _lock(tx: Tx, found: Sequence[KeyHead], most: int, before: Position) -> dict[str, Allowed]:
    """Lock limits, in the order in which they hand out slots, and those that are to be shut because nobody waits.

    A limit whose first run is not `before` that place would give none: it must not take the place of one that does.

    Looked at again by the statement that locks them: one that was shut meanwhile is left alone.
    """
    empty = [head.key for head in found if head.run_id is None]
    in_time = {place.run_id for place in positions(found) if place < before} if before is not END else None
    waiting = found if in_time is None else [head for head in found if head.run_id in in_time]
    chosen = [*in_turn(waiting)[:most], *empty[:COMPARED]]
    # In the order of keys, though none is waited for.
    locked = allowed(await tx.fetch("lock_open_limits", [(key,) for key in sorted(chosen)]))
    return {key: locked[key] for key in chosen if key in locked}


async def _lock_wider(tx: Tx, keys: set[str], waiting: dict[str, list[Candidate]]) -> dict[str, Allowed]:
    """Lock those of these limits that nobody has. One may be missing: dropped, being unused, while an enqueue under it
    was not yet to be seen. Nobody but a claim would ever notice.
    """
    # Narrow limits are locked already, and a wider key may sort before them: so none is waited for, only skipped.
    rows = [(key,) for key in sorted(keys)]
    locked = await tx.fetch("lock_free_limits", rows)
    if len(locked) < len(rows):
        runs = [(candidate.run_id,) for candidates in waiting.values() for candidate in candidates]
        if await tx.fetch("make_limits_of", runs):
            locked = await tx.fetch("lock_free_limits", rows)
    return allowed(locked)


async def _free(tx: Tx, limits: dict[str, Allowed], counted: dict[str, Counted]) -> dict[str, int]:
    """`counted` gets what was found of the rates among them."""
    rooms = await rates.room(tx, limits) if limits else {}
    counted.update(await rates.counted(tx, limits, rooms))
    return {key: room.free for key, room in rooms.items()}


async def _candidates(
    tx: Tx, request: LimitedRequest, found: Sequence[WaitingRun], opened: set[str]
) -> dict[str, list[Candidate]]:
    """`opened` gets those of them that are replicas which nobody has; their parents are locked."""
    runs = [run for run in found if run.position < request.before] if request.before is not END else found
    unowned = [(run.run_id,) for run in runs if run.is_open]
    # Lock order: a parent before its replicas. Their ready rows are held already, so its lock is only taken if free.
    if unowned:
        parents = {str(id): str(parent) for id, parent in await tx.fetch("parents_of", unowned)}
        in_order = {id: parents[id] for (id,) in unowned if id in parents}
        opened |= await replicas.lock_open(tx, in_order, request.name)
    waiting: dict[str, list[Candidate]] = {}
    for run in _one_suspect([run for run in runs if not run.is_open or run.run_id in opened]):
        at_once = run.is_open or run.solo != PLAIN
        waiting.setdefault(run.key, []).append(Candidate(run.run_id, run.key, run.wider, run.rank, run.run_at, at_once))
    return waiting


def _one_suspect(runs: Sequence[WaitingRun]) -> list[WaitingRun]:
    """Return all runs that are beyond suspicion, and the first that is not."""
    first = next((run.run_id for run in runs if run.solo == SUSPECTS), None)
    return [run for run in runs if run.solo != SUSPECTS or run.run_id == first]


async def _emptied(
    tx: Tx, keys: Iterable[str], waiting: Mapping[str, Sequence[Candidate]], handed: SlotGrant
) -> list[str]:
    """Return those of these limits under which nobody waits."""
    bare = [(key,) for key in keys if key not in waiting and key not in handed.full]
    # Asked again without this worker's queues and jobs: a limit must not be shut while runs wait that only others
    # claim.
    still_waiting = {key for (key,) in await tx.fetch("waiting_under", bare)} if bare else set()
    return [key for (key,) in bare if key not in still_waiting]


async def change(tx: Tx, limits: Sequence[LimitChange]) -> None:
    """Change limits that are locked, in the order of keys."""
    if limits:
        await tx.fetch("shut_limits", [limit.row for limit in limits])


async def leave(tx: Tx, *, ended: Sequence[str] = (), again: Sequence[tuple[str, int]] = ()) -> list[Row]:
    """These runs, and leases that are followed by others, hold no slots any more: of which limits, `open_limits` wants
    to know; and of those under which a run waits again, its rank."""
    freed = list(await tx.fetch("drop_gates", [(id,) for id in ended])) if ended else []
    vacated = list(await tx.fetch("leave_gates", again)) if again else []
    # Nothing ends under a rate; but one that is tried again waits under it, and it may not know of anybody who does.
    places: list[Row] = [(key, place) for key, place, period in freed if period is None]
    places += [(key, place) for key, place, period, _ in vacated if place and period is None]
    # Without a rank, it waits no more: this was a stray.
    return places + [(key, place, ANY_RANK if rank is None else rank) for key, place, _, rank in vacated if place == 0]


async def open_limits(tx: Tx, freed: Sequence[Row]) -> None:
    """Let others take these slots. Once in a transaction: the locks are taken in the order of keys.

    Locked before it is opened: a claim that counts these slots at this moment would shut it afterwards.
    """
    if not freed:
        return
    # Once per limit, and in the order of keys below: several runs of this transaction may have freed the same one.
    places: dict[str, int] = {}
    ranks: dict[str, int] = {}
    for key, place, *rank in freed:
        places[key] = min(place, places.get(key, place))
        if rank:
            ranks[key] = min(rank[0], ranks.get(key, rank[0]))
    keys = [(key,) for key in sorted(places)]
    most = allowed(await tx.fetch("lock_limits", keys))
    if ranks:
        await tx.fetch("lower_ranks", sorted(ranks.items()))
    opened = await tx.hot.open_limits([(key, places[key]) for (key,) in keys])
    tx.wake(*{queue for _, _, *queues in opened for queue in queues if queue is not None})
    blocking = {key: most[key] for key, blocks, *_ in opened if blocks and key in most}
    unblocked: list[Row] = []
    for key, count in (await _free(tx, blocking, {})).items() if blocking else ():
        if count > 0:
            unblocked += await rates.unblock(tx, key, count)
    if unblocked:
        await rates.wake_queues_under(tx, unblocked)
