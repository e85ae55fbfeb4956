"""Claims: what a worker asks for, what it gets, and how it splits its free slots between queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from rota.core.limits.turns import KeyHead
from rota.core.workers.requirements import MetRequirements

NIL_ID, LAST_ID = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"


class Watermark(msgspec.Struct, frozen=True, order=True):
    """Place in a queue's order where the next look begins.

    Index entries of deleted rows before it stay while any old transaction is open; starting behind them keeps the cost
    of a claim flat.
    """

    rank: int = -32_768
    run_at: int = 0
    id: str = NIL_ID


START, LAST = Watermark(), Watermark(32_767, 2**62, LAST_ID)


class Position(msgspec.Struct, frozen=True, order=True):
    """Place of a run in the one order of all kinds of runs.

    `preferred` is 0 if the run's requirements name the worker, else 1: it decides between runs of the same instant.
    """

    rank: int
    run_at: int
    preferred: int
    run_id: str

    @property
    def watermark(self) -> Watermark:
        """Return the same place in the order of plain runs, none of which names a worker."""
        return Watermark(self.rank, self.run_at, self.run_id if self.preferred else NIL_ID)

    def later(self, slack: int) -> Position:
        """Return the place `slack` µs behind it, within the same priority."""
        return Position(self.rank, self.run_at + slack, 1, LAST_ID) if slack else self


END = Position(32_767, 2**62, 1, LAST_ID)

PLAIN, AT_ONCE, SUSPECTS = 0, 1, 2


class QueueRequest(msgspec.Struct, frozen=True):
    queue: str
    wanted: int
    after: Watermark = START


class ClaimRequest(msgspec.Struct, frozen=True):
    """Request of a worker for runs; `known` maps each job to the newest version that it can run, `lease` is in µs.

    `solo` is the most delicate kind of run that it accepts: `PLAIN`; `AT_ONCE`, which must begin at once and are only
    claimed into free slots; or `SUSPECTS`, of which a worker has one at a time.
    """

    worker_id: str
    asks: tuple[QueueRequest, ...]
    known: Mapping[str, int]
    lease: int
    solo: int
    before: Watermark = LAST


class LimitedRequest(msgspec.Struct, frozen=True):
    """Request for at most `slots` runs under limits. The first `now` of them start at once (None: all of them); the
    others, which have their places under the limits already, wait in a buffer for a moment. Solo runs, replicas and
    runs under a rate never do.

    It returns at most one of `SUSPECTS`. Replicas are included; a worker `name` has at most one replica of each parent.
    """

    worker_id: str
    name: str
    queues: tuple[str, ...]
    known: Mapping[str, int]
    lease: int
    slots: int
    solo: int
    met: MetRequirements = MetRequirements()
    before: Position = END
    now: int | None = None


class RestrictedRequest(msgspec.Struct, frozen=True):
    """Request for runs that not every worker may have at any time: with requirements, replicas, and solo runs; never
    more than the free `slots`.

    `name` is the worker's, which several workers may share. It returns at most one of `SUSPECTS`.
    """

    worker_id: str
    name: str
    queues: tuple[str, ...]
    known: Mapping[str, int]
    lease: int
    slots: int
    solo: int
    met: MetRequirements
    before: Position = END


class OrderedRequest(msgspec.Struct, frozen=True):
    """Request for the first runs of each queue, of whatever kind, in one order.

    `slots` are the free ones, for runs that must begin at once; it is 0 while the worker has others to begin before.
    `needs` are the ids of all requirements from which `met` was worked out. Within one priority, a claim of several
    runs may pass over a run of another kind that is older by up to `slack` µs; 0 keeps the order exactly. `partial`:
    claim what there is for the worker also if there are requirements that it does not know yet.
    """

    worker_id: str
    name: str
    asks: tuple[QueueRequest, ...]
    known: Mapping[str, int]
    lease: int
    slots: int
    solo: int
    met: MetRequirements = MetRequirements()
    needs: frozenset[str] = frozenset()
    slack: int = 0
    partial: bool = False

    def limited(self, queue: str, slots: int, before: Position = END, now: int | None = None) -> LimitedRequest:
        who = (self.worker_id, self.name, (queue,), self.known, self.lease)
        return LimitedRequest(*who, slots, self.solo, self.met, before, now)

    def restricted(self, queue: str, slots: int, before: Position = END) -> RestrictedRequest:
        who = (self.worker_id, self.name, (queue,), self.known, self.lease)
        return RestrictedRequest(*who, slots, self.solo, self.met, before)


class Heads(msgspec.Struct, frozen=True):
    """First plain and first solo run of queues, and their limits to see to; `needs`: ids of all requirements."""

    plain: dict[str, Position]
    solo: dict[str, Position]
    open_keys: dict[str, list[KeyHead]]
    needs: frozenset[str]


class Candidate(msgspec.Struct, frozen=True, order=True):
    """Run that a worker may claim, in claim order; `preferred` as of `Position`."""

    rank: int
    run_at: int
    preferred: int
    run_id: str
    solo: int
    parent_id: str | None = None

    @property
    def position(self) -> Position:
        return Position(self.rank, self.run_at, self.preferred, self.run_id)


class WaitingRun(msgspec.Struct, frozen=True):
    """Run that waits under `key`, its narrowest limit, and under `wider` ones.

    `is_open`: a replica that is not assigned to a worker yet.
    """

    key: str
    run_id: str
    solo: int
    is_open: bool = False
    rank: int = 0
    run_at: int = 0
    wider: tuple[str, ...] = ()

    @property
    def position(self) -> Position:
        return Position(self.rank, self.run_at, 1, self.run_id)


class Claim(msgspec.Struct, frozen=True, gc=False):
    """Run, and the right (`fence`) to execute it; `limited`: its end releases slots of limits.

    `part`: the step of a pipeline to execute; `job` and `payload` are then that step's, `pipeline` is the run's job.
    """

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
    solo: int = PLAIN
    limited: bool = False
    part: str | None = None
    pipeline: str | None = None

    @property
    def idempotency_key(self) -> str:
        """Key that all attempts and manual retries of the same work share; each part of a pipeline has its own."""
        work = self.origin_id or self.run_id
        return work if self.part is None else f"{work}:{self.part}"

    @property
    def run_job(self) -> str:
        """Return the run's own job, also of a part of a pipeline."""
        return self.pipeline or self.job

    @property
    def suspect(self) -> bool:
        """Return whether an attempt was lost: the run may have killed its worker, or have run beside one that did."""
        return self.solo == SUSPECTS


def shares(
    free: int,
    queues: Sequence[str],
    hungry: Mapping[str, bool],
    weights: Mapping[str, int] = MappingProxyType({}),
    owed: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, int]:
    """Split `free` slots between queues, by weight if there are weights.

    Queues that were empty last time get one slot each, to look. If all were empty, all are equal: by weight, a light
    queue would be looked at late. `owed` is what each queue missed so far because slots are whole numbers.
    """
    if not queues or free <= 0:
        return {}
    hungry_ones = busy_of(queues, hungry)
    busy = hungry_ones or list(queues)
    looks = [queue for queue in queues if queue not in busy][: max(0, free - len(busy))]
    slots = free - len(looks)
    if weights and hungry_ones:
        split = _by_weight(slots, due(slots, busy, weights, owed))
    else:
        each, remainder = divmod(slots, len(busy))
        split = {queue: each + (place < remainder) for place, queue in enumerate(busy)}
    split.update(dict.fromkeys(looks, 1))
    return {queue: share for queue, share in split.items() if share}


def busy_of(queues: Sequence[str], hungry: Mapping[str, bool]) -> list[str]:
    """Return the queues that had runs last time."""
    return [queue for queue in queues if hungry.get(queue, True)]


def due(places: int, busy: Sequence[str], weights: Mapping[str, int], owed: Mapping[str, float]) -> dict[str, float]:
    """Return the fractional share of each busy queue, including what it is `owed`."""
    total = sum(weights[queue] for queue in busy)
    return {queue: places * weights[queue] / total + owed.get(queue, 0.0) for queue in busy}


def still_owed(
    split: Mapping[str, int], busy: Sequence[str], weights: Mapping[str, int], owed: Mapping[str, float]
) -> dict[str, float]:
    """Return the fractions that queues are owed after this split.

    With one free slot at a time this is what keeps the weights: a light queue's turn comes when enough is owed. Clamped
    to one slot either way: a slot that a queue got because everybody gets one, or missed while it was empty, is not
    made up for.
    """
    places = sum(split.get(queue, 0) for queue in busy)
    debts = {queue: share - split.get(queue, 0) for queue, share in due(places, busy, weights, owed).items()}
    return {**owed, **{queue: min(1.0, max(-1.0, debt)) for queue, debt in debts.items()}}


def _by_weight(places: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Round shares to whole slots by the largest remainder; at least one for each queue if there are enough."""
    least = 1 if places >= len(shares) else 0
    split = {queue: max(least, int(share)) for queue, share in shares.items()}
    while (missing := places - sum(split.values())) > 0:
        split[max(split, key=lambda queue: shares[queue] - split[queue])] += 1
    while missing < 0:
        above = [queue for queue in split if split[queue] > least]
        split[min(above, key=lambda queue: shares[queue] - split[queue])] -= 1
        missing += 1
    return split
