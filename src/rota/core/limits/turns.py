"""Turns: which of the runs that wait under limits get the free slots, and in what order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from rota.core.limits.limits import limit_of_key


class KeyHead(msgspec.Struct, frozen=True):
    """Limit that is open, and the first run that waits under its `key`; without a run, nobody waits any more."""

    key: str
    rank: int = 0
    run_at: int = 0
    run_id: str | None = None


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
    """Run that waits under `key`, its narrowest limit, and the `wider` limits that it also needs."""

    run_id: str
    key: str
    wider: tuple[str, ...] = ()
    rank: int = 0
    run_at: int = 0


class SlotGrant(msgspec.Struct, frozen=True):
    """Result of handing out slots.

    `full`: limits without a free slot. `blocked`: limit → the wider limit that its next run waits for. `left`: free
    slots of each limit.
    """

    taken: list[Candidate]
    full: set[str]
    blocked: dict[str, str]
    left: dict[str, int] = {}


def hand_out(waiting: Mapping[str, Sequence[Candidate]], free: Mapping[str, int], slots: int) -> SlotGrant:
    """Grant slots in the order of `_by_turns`, each run only if all its limits have room.

    `free` has the limits whose rows this transaction has locked. A wider limit that is missing is locked by another
    transaction at this moment, so a run that needs it is left for the next look.
    """
    left = dict(free)
    taken: list[Candidate] = []
    blocked: dict[str, str | None] = {}
    for candidate in _by_turns(waiting):
        if len(taken) >= slots:
            break
        if left.get(candidate.key, 0) <= 0:
            continue
        full = [wider for wider in candidate.wider if left.get(wider, 1) <= 0]
        if full:
            blocked.setdefault(candidate.key, full[0])
        elif all(wider in left for wider in candidate.wider):
            taken.append(candidate)
            for needed in (candidate.key, *candidate.wider):
                left[needed] -= 1
        else:
            blocked[candidate.key] = None  # another transaction has the wider limit locked: not known yet
    served = {candidate.key for candidate in taken}
    full_keys = {key for key in waiting if left.get(key, 0) <= 0}
    over = served | full_keys
    blocked_by = {key: by for key, by in blocked.items() if by is not None and key not in over}
    return SlotGrant(taken, full_keys, blocked_by, left)


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
