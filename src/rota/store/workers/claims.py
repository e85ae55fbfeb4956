"""Claims in one order: the first runs of a queue, of whatever kind they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

import msgspec

from rota.core.limits.turns import KeyHead
from rota.core.runs.claim import (
    AT_ONCE,
    END,
    PLAIN,
    Claim,
    ClaimRequest,
    Heads,
    OrderedRequest,
    Position,
    QueueRequest,
)
from rota.store.databases.database import Tx
from rota.store.limits import slots
from rota.store.workers import requirements


class Source(IntEnum):
    """Kind of claim: each has a place where its runs wait, and a way to take them."""

    PLAIN = 0
    RESTRICTED = 1
    LIMITED = 2


class OrderedClaims(msgspec.Struct):
    """Result of a claim in one order.

    `plain` runs may be kept for later, `others` begin at once. `learn`: there are requirements that the worker does not
    know; nothing was claimed, unless the request was `partial`. `mixed`: other than plain runs wait. `held_up`: a
    queue's first run must begin at once, and no slot is free. `left`: queues in which there may be more. `missed`:
    somebody else was at runs that came first. `shut` and `emptied` as of `LimitedClaims`. `took`: how many seconds it
    went through plain runs.
    """

    plain: list[Claim] = []
    others: list[Claim] = []
    learn: bool = False
    mixed: bool = False
    held_up: bool = False
    left: set[str] = set()
    missed: bool = False
    shut: bool = False
    emptied: tuple[str, ...] = ()
    took: float = 0.0


async def claim(tx: Tx, request: OrderedRequest, monotonic: Callable[[], float]) -> OrderedClaims:
    """Claim, of each queue, from the source whose first run comes first, up to the first run of the next source."""
    began = monotonic()
    heads = await tx.hot.heads(request)
    learn = heads.needs != request.needs
    if learn and not request.partial:
        return OrderedClaims(learn=True)
    claiming = _Claiming(tx, request, heads, monotonic)
    claiming.answer.took, claiming.answer.learn = monotonic() - began, learn
    for ask in request.asks:
        await claiming.claim(ask)
    answer = claiming.answer
    # All slots are given to others than plain runs, and nothing waits for a place in the buffer: a look before one of
    # them has ended would be in vain.
    buffers = request.slots < sum(ask.wanted for ask in request.asks)
    if answer.left and answer.others and not heads.plain and not buffers and len(answer.others) >= request.slots:
        answer.held_up = True
    return answer


class _Claiming:
    """One claim, and its answer so far."""

    def __init__(self, tx: Tx, request: OrderedRequest, heads: Heads, monotonic: Callable[[], float]) -> None:
        self._tx = tx
        self._monotonic = monotonic
        self._request = request
        self._heads = heads
        self._open_left = False  # whether the last claim under limits left one open
        self.answer = OrderedClaims()

    async def claim(self, ask: QueueRequest) -> None:
        open_keys = await self._open_keys(ask.queue)
        taken = await self._claim_first(ask, open_keys)
        empty = [key for key in open_keys if key.run_id is None]
        # Whatever was taken: a busy worker would look at them again and again. A claim under limits has seen to them.
        if empty and taken is not Source.LIMITED:
            self.answer.emptied += await slots.shut_empty(self._tx, empty)

    async def _open_keys(self, queue: str) -> Sequence[KeyHead]:
        """Return limits with their first runs, the highest priority among them, however many are open."""
        heads: Sequence[KeyHead] = self._heads.open_keys.get(queue, [])
        corrected: list[str] = []
        heads = await slots.look_further(self._tx, self._request.limited(queue, self._request.slots), heads, corrected)
        self.answer.emptied += (*corrected,)
        return heads

    async def _claim_first(self, ask: QueueRequest, open_keys: Sequence[KeyHead]) -> Source | None:
        """Return which source it claimed from."""
        answer = self.answer
        firsts = await self._firsts(ask.queue, open_keys)
        turns = sorted((position, source) for source, position in firsts.items())
        answer.mixed = answer.mixed or any(source is not Source.PLAIN for source in firsts)
        for place, (_, source) in enumerate(turns, 1):
            before = turns[place][0].later(self._request.slack) if place < len(turns) else END
            if source is Source.RESTRICTED and self._free(ask) <= 0:
                answer.held_up = True  # nothing behind it is claimed meanwhile, which would begin before it
                answer.left.add(ask.queue)
                return None
            taken = await self._take(ask, source, before, open_keys)
            if answer.held_up:
                answer.left.add(ask.queue)
                return source if taken else None
            if taken:
                if len(turns) > 1 or source is Source.RESTRICTED or (source is Source.LIMITED and self._open_left):
                    answer.left.add(ask.queue)
                return source
            answer.missed = True  # somebody else has it, or its limits turn out to be full: the next ones may go
        return None

    def _free(self, ask: QueueRequest) -> int:
        """Return how many runs of this queue can begin at once."""
        return max(0, min(ask.wanted, self._request.slots - len(self.answer.plain) - len(self.answer.others)))

    async def _firsts(self, queue: str, open_keys: Sequence[KeyHead]) -> Mapping[Source, Position]:
        """Return where the first run of each source is, if it has any for this worker."""
        request = self._request.restricted(queue, 1)
        restricted = await requirements.first(self._tx, request) if request.met else None
        alone = [position for position in (self._heads.solo.get(queue), restricted) if position is not None]
        limited = slots.positions(open_keys)
        plain = [self._heads.plain[queue]] if queue in self._heads.plain else []
        found = {Source.PLAIN: plain, Source.RESTRICTED: alone, Source.LIMITED: limited}
        return {source: min(positions) for source, positions in found.items() if positions}

    async def _take(
        self, ask: QueueRequest, source: Source, before: Position, open_keys: Sequence[KeyHead]
    ) -> list[Claim]:
        tx, answer, request = self._tx, self.answer, self._request
        if any(claim.suspect for claim in answer.others):  # a worker has one at a time
            request = msgspec.structs.replace(request, solo=AT_ONCE)
        if source is Source.PLAIN:
            asked = ClaimRequest(request.worker_id, (ask,), request.known, request.lease, PLAIN, before.watermark)
            began = self._monotonic()
            plain = await tx.hot.claim(asked)
            answer.took += self._monotonic() - began
            answer.plain += plain
            return plain
        if source is Source.RESTRICTED:
            claims = (await requirements.claim(tx, request.restricted(ask.queue, self._free(ask), before))).claims
        else:
            ordered = request.limited(ask.queue, ask.wanted, before, self._free(ask))
            limited = await slots.claim(tx, ordered, open_keys)
            self._open_left = limited.left
            answer.held_up = answer.held_up or limited.held_up
            answer.shut = answer.shut or limited.shut
            answer.emptied += limited.emptied
            claims = limited.claims
        answer.others += claims
        return claims
