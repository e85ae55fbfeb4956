"""Slots: given out to the runs that wait under a limit, and given back when their leases end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from rota.core.limits.turns import Candidate, KeyHead, SlotGrant, hand_out, in_turn
from rota.core.runs.claim import END, SUSPECTS, Claim, LimitedRequest, Position, WaitingRun
from rota.store.databases.database import Row, Tx
from rota.store.limits import rates
from rota.store.limits.rates import SHUT_FOR_A_WHILE, Allowed, Counted, allowed
from rota.store.workers import replicas

_OPEN, _NOBODY_WAITS, _FULL = 0, 1, 2
# More limits than slots are locked: some turn out to be full or empty, and the claim should not come back with nothing.
_MORE_KEYS = 16
# Keys whose first runs are compared. While more of them have work, turns come before priority and age.
_COMPARED = 100


class LimitedClaims(msgspec.Struct, frozen=True):
    """Result of a claim of limited runs; `waiting`: there was one, or a limit to see to.

    `shut`: a rate is, until its time comes. `emptied`: limits that it shut because nobody waits under them, as far as
    it could see: an enqueue may have been under way.
    """

    claims: list[Claim]
    waiting: bool
    shut: bool = False
    emptied: tuple[str, ...] = ()


async def heads(tx: Tx, request: LimitedRequest) -> list[KeyHead]:
    """Return limits under which a run waits that this worker may have, and those under which nobody waits any more."""
    return await tx.hot.open_keys(request, request.slots + _COMPARED)


def positions(heads: Sequence[KeyHead]) -> list[Position]:
    """Return where the first runs under these keys are in the one order of all kinds of runs."""
    return [Position(head.rank, 1, head.run_at, head.run_id) for head in heads if head.run_id is not None]


async def claim(tx: Tx, request: LimitedRequest, open_keys: Sequence[KeyHead] | None = None) -> LimitedClaims:
    """Key first: lock a few limits, count their slots, take as many of their runs as are free.

    Every lock is taken only if nobody else has it, so that claims do not wait, and cannot deadlock; but for a limit
    that has to be made, and is being made by somebody else.
    """
    found = await heads(tx, request) if open_keys is None else open_keys
    # A worker without a free slot only asks whether anything waits.
    if not found or not request.slots:
        return LimitedClaims([], bool(found))
    keys = await _lock(tx, found, request.slots + _MORE_KEYS, request.before)
    counted: dict[str, Counted] = {}
    free = await _free(tx, keys, counted)
    slots_by_key = {key: min(free[key], request.slots) for key in keys if free[key] > 0}
    opened: set[str] = set()
    waiting = await _candidates(tx, request, slots_by_key, opened)
    wider = {
        key for candidates in waiting.values() for candidate in candidates for key in candidate.wider
    } - keys.keys()
    if wider:
        free.update(await _free(tx, await _lock_wider(tx, wider, waiting), counted))
    handed = hand_out({key: waiting.get(key, []) for key in keys}, free, request.slots)
    # Only those that it takes: one that is given to its name and not taken would keep it from the others of the parent.
    await replicas.give(tx, opened & {candidate.run_id for candidate in handed.taken}, request.name)
    claims = await tx.hot.take(request, [candidate.run_id for candidate in handed.taken]) if handed.taken else []
    if claims:
        # With the fence of the new lease: the report of an earlier attempt must not give this slot back.
        await tx.fetch("enter_gates", [(claim.run_id, claim.fence) for claim in claims])
        if counted:
            begun = Counter(key for candidate in handed.taken for key in (candidate.key, *candidate.wider))
            # The time of one lease stands for all: every lease of a claim begins at the same instant.
            await rates.note(tx, begun, counted, claims[0].run_id)
    full = {key: rate for key, rate in counted.items() if handed.left[key] <= 0}
    emptied = await _leave_open_or_shut(tx, keys, waiting, handed, await rates.opening(tx, full) if full else {})
    return LimitedClaims(claims, True, bool(full), tuple(emptied))


async def shut_empty(tx: Tx, empty: Sequence[KeyHead]) -> tuple[str, ...]:
    """Shut those of these limits under which nobody waits; it needs no slot. Return their keys."""
    keys = await _lock(tx, empty, 0, END)
    return tuple(await _leave_open_or_shut(tx, keys, {}, SlotGrant([], set(), {}), {}))


async def _lock(tx: Tx, found: Sequence[KeyHead], most: int, before: Position) -> dict[str, Allowed]:
    """Lock limits, in the order in which they hand out slots, and those that are to be shut because nobody waits.

    A limit whose first run is not `before` that place would give none: it must not take the place of one that does.

    Looked at again by the statement that locks them: one that was shut meanwhile is left alone.
    """
    empty = [head.key for head in found if head.run_id is None]
    in_time = {place.run_id for place in positions(found) if place < before} if before is not END else None
    waiting = found if in_time is None else [head for head in found if head.run_id in in_time]
    chosen = [*in_turn(waiting)[:most], *empty[:_COMPARED]]
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
    # A statement of its own, after the lock: an older snapshot would not see what the last holder of it took.
    held: dict[str, int] = {}
    slots = [(key,) for key, limit in limits.items() if limit.period is None]
    if slots:
        held = {key: int(count) for key, count in await tx.fetch("held_slots", slots)}
    rate_counts = await rates.count(tx, limits)
    counted.update(rate_counts)
    return {
        key: rate_counts[key].free if key in rate_counts else limit.max - held.get(key, 0)
        for key, limit in limits.items()
    }


async def _candidates(
    tx: Tx, request: LimitedRequest, slots_by_key: dict[str, int], opened: set[str]
) -> dict[str, list[Candidate]]:
    """`opened` gets those of them that are replicas which nobody has; their parents are locked."""
    found = await tx.hot.candidates(request, slots_by_key) if slots_by_key else []
    runs = [run for run in found if run.position < request.before] if request.before is not END else found
    unowned = [(run.run_id,) for run in runs if run.is_open]
    # Lock order: a parent before its replicas. Their ready rows are held already, so its lock is only taken if free.
    if unowned:
        parents = {str(id): str(parent) for id, parent in await tx.fetch("parents_of", unowned)}
        in_order = {id: parents[id] for (id,) in unowned if id in parents}
        opened |= await replicas.lock_open(tx, in_order, request.name)
    free_ones = _one_suspect([run for run in runs if not run.is_open or run.run_id in opened])
    if not free_ones:
        return {}
    wider: dict[str, list[str]] = {}
    for run_id, key in await tx.fetch("wider_gates", [(run.run_id,) for run in free_ones]):
        wider.setdefault(str(run_id), []).append(key)
    waiting: dict[str, list[Candidate]] = {}
    for run in free_ones:
        candidate = Candidate(run.run_id, run.key, tuple(wider.get(run.run_id, ())), run.rank, run.run_at)
        waiting.setdefault(run.key, []).append(candidate)
    return waiting


def _one_suspect(runs: Sequence[WaitingRun]) -> list[WaitingRun]:
    """Return all runs that are beyond suspicion, and the first that is not."""
    first = next((run.run_id for run in runs if run.solo == SUSPECTS), None)
    return [run for run in runs if run.solo != SUSPECTS or run.run_id == first]


async def _leave_open_or_shut(
    tx: Tx, keys: Iterable[str], waiting: dict[str, list[Candidate]], handed: SlotGrant, opening: dict[str, int]
) -> list[str]:
    """`opening`: when rates without a free place have one again. Those under which nobody waits."""
    served = {candidate.key for candidate in handed.taken}
    bare = [(key,) for key in keys if key not in waiting and key not in handed.full]
    # Asked again without this worker's queues and jobs: a limit must not be shut while runs wait that only others
    # claim.
    still_waiting = {key for (key,) in await tx.fetch("waiting_under", bare)} if bare else set()
    emptied = [key for (key,) in bare if key not in still_waiting]
    rows: list[Row] = [
        *((key, _shut(key, opening), None, int(key in served), opening.get(key)) for key in handed.full),
        *((key, _FULL, wider, 0, None) for key, wider in handed.blocked.items()),
        *((key, _OPEN, None, 1, None) for key in served - handed.full),
        *((key, _NOBODY_WAITS, None, 1, None) for key in emptied),
        *((key, None, None, 0, at) for key, at in opening.items() if key not in handed.full),
    ]
    if rows:
        # In the order of keys, as everybody locks limits: two claims must not deadlock.
        await tx.fetch("shut_limits", sorted(rows, key=_key_of))
    return emptied


def _key_of(row: Row) -> str:
    """Return the limit that a row begins with."""
    key, *_ = row
    return str(key)


def _shut(key: str, opening: dict[str, int]) -> int:
    return SHUT_FOR_A_WHILE if key in opening else _FULL


async def leave(tx: Tx, *, ended: Sequence[str] = (), again: Sequence[tuple[str, int]] = ()) -> list[Row]:
    """These runs, and leases that are followed by others, hold no slots any more: of which limits, `open_limits` wants
    to know."""
    freed = list(await tx.fetch("drop_gates", [(id,) for id in ended])) if ended else []
    vacated = list(await tx.fetch("leave_gates", again)) if again else []
    # Nothing ends under a rate; but one that is tried again waits under it, and it may not know of anybody who does.
    places: list[Row] = [(key, place) for key, place, period in freed if period is None]
    return places + [(key, place) for key, place, period in vacated if period is None or place == 0]


async def open_limits(tx: Tx, freed: Sequence[Row]) -> None:
    """Let others take these slots. Once in a transaction: the locks are taken in the order of keys.

    Locked before it is opened: a claim that counts these slots at this moment would shut it afterwards.
    """
    if not freed:
        return
    # Once per limit, and in the order of keys below: several runs of this transaction may have freed the same one.
    places: dict[str, int] = {}
    for key, place in freed:
        places[key] = min(place, places.get(key, place))
    keys = [(key,) for key in sorted(places)]
    most = allowed(await tx.fetch("lock_limits", keys))
    await tx.fetch("open_limits", [(key, places[key]) for (key,) in keys])
    blocking = {key: most[key] for (key,) in await tx.fetch("blocking_limits", keys) if key in most}
    for key, count in (await _free(tx, blocking, {})).items() if blocking else ():
        if count > 0:
            keys += [(other,) for (other,) in await tx.fetch("unblock_limits", key=key, count=count)]
    await rates.wake_queues_under(tx, keys)
