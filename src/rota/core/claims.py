"""Claiming: what a worker asks for, what it gets, and how it shares its appetite between queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

NIL_ID = "00000000-0000-0000-0000-000000000000"


class Watermark(msgspec.Struct, frozen=True, order=True):
    """The place in a queue's order where the next look begins.

    Deleted index entries before it are dead but not gone while any old transaction is open; starting behind them
    keeps a claim's cost flat.
    """

    rank: int = -32_768
    run_at: int = 0
    id: str = NIL_ID


START = Watermark()


class Ask(msgspec.Struct, frozen=True):
    queue: str
    wanted: int
    after: Watermark = START


class ClaimRequest(msgspec.Struct, frozen=True):
    """`known` maps each job to the newest version this worker can run; `lease` is in microseconds.

    `solo` runs must start at once, so they are only claimed into free slots.
    """

    worker_id: str
    asks: tuple[Ask, ...]
    known: Mapping[str, int]
    lease: int
    solo: bool


class LimitedRequest(msgspec.Struct, frozen=True):
    """For runs under limits: they must start at once, so no more than there are free `slots`."""

    worker_id: str
    queues: tuple[str, ...]
    known: Mapping[str, int]
    lease: int
    slots: int


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A run and the right to execute it; `limited`: its end gives slots back."""

    run_id: str
    fence: int
    attempt: int
    job: str
    job_version: int
    payload: str
    queue: str
    rank: int
    run_at: int
    scope_kind: str
    scope_id: str
    key: str | None
    overrides: str | None
    origin_id: str | None
    max_attempts: int
    on_lost: str
    created_at: int
    plan_time: int | None = None
    covers_from: int | None = None
    missed_count: int | None = None
    limited: bool = False


def shares(free: int, queues: Sequence[str], hungry: Mapping[str, bool]) -> dict[str, int]:
    """Split `free` places between queues; those that had nothing last time only get a look (one place)."""
    if not queues or free <= 0:
        return {}
    busy = [queue for queue in queues if hungry.get(queue, True)] or list(queues)
    looks = [queue for queue in queues if queue not in busy][: max(0, free - len(busy))]
    left = free - len(looks)
    each, rest = divmod(left, len(busy))
    split = {queue: each + (place < rest) for place, queue in enumerate(busy)}
    split.update(dict.fromkeys(looks, 1))
    return {queue: wanted for queue, wanted in split.items() if wanted}
