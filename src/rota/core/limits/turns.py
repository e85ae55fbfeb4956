"""Turns: which of the runs that wait under limits get the free slots, and in what order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import IntEnum

import msgspec

from rota.core.limits.limits import ANY_RANK, NO_RANK, limit_of_key


class Shut(IntEnum):
    """State of a limit: whether claims look at it, and if not, what opens it again.

    `OPEN`: it may have a free slot, and a run that waits for one. `NOBODY_WAITS`: the next run that is due. `FULL`: a
    slot that comes free, under it or under the wider limit that blocks it. `FOR_A_WHILE`: its time, being a rate.
    """

    OPEN = 0
    NOBODY_WAITS = 1
    FULL = 2
    FOR_A_WHILE = 3


class Allowed(msgspec.Struct, frozen=True):
    """Row of a limit: so many at once, or so many within a period (µs)."""

    max: int
    period: int | None = None


class Room(msgspec.Struct, frozen=True):
    """Count of what a limit has room for, its row being locked, at an instant of the database's clock.

    Of a rate: so many began `ahead`, a period or more in the future, since the clock was set back; `stale`: some count
    no more.
    """

    free: int
    at: int
    ahead: int = 0
    stale: bool = False


class LimitChange(msgspec.Struct, frozen=True):
    """Change of a limit by a claim. `shut` None: it stays as it is; `served`: it goes to the end of its line."""

    key: str
    shut: Shut | None
    blocked_by: str | None = None
    served: bool = False
    opens_at: int | None = None

    @property
    def row(self) -> tuple[str, int | None, str | None, int, int | None]:
        return self.key, self.shut, self.blocked_by, int(self.served), self.opens_at


class KeyHead(msgspec.Struct, frozen=True):
    """Limit that is open, and the first run that waits under its `key`; without a run, nobody waits any more.

    `at_least`: no run under it has a lower rank (a higher priority), as far as its row knows.
    """

    key: str
    rank: int = 0
    run_at: int = 0
    run_id: str | None = None
    at_least: int = 0
    served_at: int = 0

    @property
    def place(self) -> tuple[int, int, str]:
        return self.rank, self.run_at, self.run_id or ""


BEFORE_ALL = KeyHead("", at_least=ANY_RANK - 1)
"""Where a look at limits begins that leaves out none."""


def last_looked_at(page: Sequence[KeyHead]) -> KeyHead:
    """Return the last of these limits in the order in which they are looked at: by what their rows know.

    Keys are in the order of the database, which may not be Python's.
    """
    return max(reversed(page), key=lambda head: (head.at_least, head.served_at))


def further(heads: Sequence[KeyHead], page: Sequence[KeyHead]) -> list[KeyHead]:
    """Return these heads and those of the next look, least recently served first."""
    return sorted(first_of_each([*heads, *page]), key=lambda head: head.served_at)


def may_be_passed(heads: Sequence[KeyHead], page: Sequence[KeyHead], most: int) -> bool:
    """Return whether there may be a limit, beyond those that were looked at, with a run of a higher priority.

    They are looked at in the order of what their rows know, at most so many at once; `page` are the last ones.
    """
    if len(page) < most:
        return False
    first = min((head.rank for head in heads if head.run_id is not None), default=NO_RANK + 1)
    return first > max(head.at_least for head in heads)


def first_of_each(heads: Iterable[KeyHead]) -> list[KeyHead]:
    """Return the first head of each key, which may have one in several queues; keys stay in the order given."""
    firsts: dict[str, KeyHead] = {}
    for head in heads:
        known = firsts.get(head.key)
        if known is None or known.run_id is None or (head.run_id is not None and head.place < known.place):
            firsts[head.key] = head
    return list(firsts.values())


def in_turn(heads: Iterable[KeyHead]) -> list[str]:
    """Order the keys under which runs wait: by priority, then the limit with the oldest run, then as they are given.

    They are given in the order in which they were served: the keys of one limit take turns.
    """
    waiting = [(head.rank, limit_of_key(head.key), head) for head in heads if head.run_id is not None]
    oldest: dict[tuple[int, str], tuple[int, str]] = {}
    for rank, limit, head in waiting:
        place, known = (head.run_at, head.run_id or ""), oldest.get((rank, limit))
        if known is None or place < known:
            oldest[rank, limit] = place
    turns = [(rank, oldest[rank, limit], turn, head.key) for turn, (rank, limit, head) in enumerate(waiting)]
    return [key for *_, key in sorted(turns)]


class Candidate(msgspec.Struct, frozen=True):
    """Run that waits under `key`, its narrowest limit, and the `wider` limits that it also needs.

    `at_once`: it may only be taken into a free slot.
    """

    run_id: str
    key: str
    wider: tuple[str, ...] = ()
    rank: int = 0
    run_at: int = 0
    at_once: bool = False


def fair_asks(free: Mapping[str, int], slots: int) -> dict[str, int]:
    """Return how many runs to look at under each key first: a little more than its turns will come to.

    To look at as many as there are slots under each would be in vain for nearly all of them.
    """
    share = -(-slots // max(1, len(free))) + 1
    return {key: min(most, slots, share) for key, most in free.items()}


def cut_short(
    asked: Mapping[str, int],
    free: Mapping[str, int],
    waiting: Mapping[str, Sequence[Candidate]],
    handed: SlotGrant,
    slots: int,
) -> bool:
    """Return whether more runs should have been looked at under some key.

    Slots are left, or a run was taken behind which a key stopped that may have a run before it.
    """
    latest: dict[str, tuple[int, int, str]] = {}
    for one in handed.taken:
        limit, place = limit_of_key(one.key), (one.rank, one.run_at, one.run_id)
        latest[limit] = max(place, latest.get(limit, place))
    for key, most in asked.items():
        seen = waiting.get(key, ())
        if len(seen) < most or most >= min(free[key], slots):
            continue
        if (len(handed.taken) < slots and not handed.held_up) or _was_passed(key, seen[-1], latest):
            return True
    return False


def _was_passed(key: str, last: Candidate, latest: Mapping[str, tuple[int, int, str]]) -> bool:
    """Return whether a run was taken behind the `last` seen under a key; keys of one limit take turns in a priority."""
    own, place = limit_of_key(key), (last.rank, last.run_at, last.run_id)
    return any(taken[0] > last.rank if limit == own else taken > place for limit, taken in latest.items())


class SlotGrant(msgspec.Struct, frozen=True):
    """Result of handing out slots.

    `full`: limits without a free slot. `blocked`: limit → the wider limit that its next run waits for. `left`: free
    slots of each limit. `held_up`: the next run must begin at once, and no slot of the worker is free for it.
    """

    taken: list[Candidate]
    full: set[str]
    blocked: dict[str, str]
    left: dict[str, int] = {}
    held_up: bool = False


def hand_out(
    waiting: Mapping[str, Sequence[Candidate]],
    free: Mapping[str, int],
    slots: int,
    now: int | None = None,
    rates: Set[str] = frozenset(),
) -> SlotGrant:
    """Grant slots in the order of `_by_turns`, each run only if all its limits have room.

    Only the first `now` of them begin at once; the others are buffered. What may not be, such as a run under one of
    the `rates`, which count when it is taken, holds up whatever comes behind it.

    `free` has the limits whose rows this transaction has locked. A wider limit that is missing is locked by another
    transaction at this moment, so a run that needs it is left for the next look.
    """
    left = dict(free)
    taken: list[Candidate] = []
    blocked: dict[str, str | None] = {}
    held_up = False
    for candidate in _by_turns(waiting):
        if len(taken) >= slots:
            break
        if left.get(candidate.key, 0) <= 0:
            continue
        full = [wider for wider in candidate.wider if left.get(wider, 1) <= 0]
        if full:
            blocked.setdefault(candidate.key, full[0])
        elif all(wider in left for wider in candidate.wider):
            at_once = candidate.at_once or (rates and not rates.isdisjoint((candidate.key, *candidate.wider)))
            if at_once and now is not None and len(taken) >= now:
                held_up = True
                break
            taken.append(candidate)
            for needed in (candidate.key, *candidate.wider):
                left[needed] -= 1
        else:
            blocked[candidate.key] = None  # another transaction has the wider limit locked: not known yet
    served = {candidate.key for candidate in taken}
    full_keys = {key for key in waiting if left.get(key, 0) <= 0}
    over = served | full_keys
    blocked_by = {key: by for key, by in blocked.items() if by is not None and key not in over}
    return SlotGrant(taken, full_keys, blocked_by, left, held_up)


def changes(handed: SlotGrant, opening: Mapping[str, int], emptied: Iterable[str] = ()) -> list[LimitChange]:
    """Return what becomes of limits after a claim, in the order of keys.

    `opening`: when rates without a free place have one again. `emptied`: limits under which nobody waits; they keep
    their place in line, because nobody was served.
    """
    served = {candidate.key for candidate in handed.taken}
    full = [
        LimitChange(key, Shut.FOR_A_WHILE if key in opening else Shut.FULL, None, key in served, opening.get(key))
        for key in handed.full
    ]
    blocked = [LimitChange(key, Shut.FULL, wider) for key, wider in handed.blocked.items()]
    still_open = [LimitChange(key, Shut.OPEN, served=True) for key in served - handed.full]
    empty = [LimitChange(key, Shut.NOBODY_WAITS) for key in emptied]
    # Whatever becomes of a rate that others wait for, somebody sees to them at its time.
    counted = [LimitChange(key, None, opens_at=at) for key, at in opening.items() if key not in handed.full]
    return sorted([*full, *blocked, *still_open, *empty, *counted], key=lambda change: change.key)


def _by_turns(waiting: Mapping[str, Sequence[Candidate]]) -> Iterator[Candidate]:
    """Order runs by priority, then by age; but the keys of one limit take turns.

    One run of each key, in the order given, is followed by a second of each.
    """
    by_limit: dict[str, list[tuple[int, int, int, Candidate]]] = {}
    for number, (key, candidates) in enumerate(waiting.items()):
        lane, rank, turn = by_limit.setdefault(limit_of_key(key), []), None, 0
        for candidate in candidates:
            turn = turn + 1 if candidate.rank == rank else 0
            rank = candidate.rank
            lane.append((rank, turn, number, candidate))
    lanes = [[candidate for *_, candidate in sorted(lane)] for lane in by_limit.values()]
    if len(lanes) == 1:
        return iter(lanes[0])
    return (candidate for *_, candidate in heapq.merge(*map(_by_age, lanes)))


def _by_age(lane: Sequence[Candidate]) -> list[tuple[int, int, str, Candidate]]:
    """Give each run of a limit, in turn, the place of the oldest that is left: it begins in its stead."""
    ages = sorted((candidate.rank, candidate.run_at, candidate.run_id) for candidate in lane)
    return [(*age, candidate) for age, candidate in zip(ages, lane, strict=True)]
