"""Claims in one order: when a worker looks for other than plain runs, and what it knows of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.core.runs.claim import OrderedRequest, QueueRequest
from rota.core.workers.requirements import MetRequirements, met_by
from rota.core.workers.worker import WorkerInfo
from rota.engine.worker.suspects import Suspects
from rota.store import Store
from rota.store.workers.claims import OrderedClaims

_LOOK_EVERY = 0.2
# Runs of the same priority are taken kind by kind, as far as their ages differ by no more than this (µs).
_SLACK = 500_000


class InOrder:
    """Knowledge of a worker about other than plain runs.

    A worker that buffers claims plain runs alone, and looks for others from time to time. While there are any
    (`mixed`), and whenever nothing is buffered, each of its claims is of all kinds. `held_up`: a run comes first that
    must begin at once; the buffer is drained for it.

    `_look_at` is kept for each queue: with fewer free slots than queues a claim asks some queues only, and says nothing
    about what waits in the others.
    """

    def __init__(self, store: Store, lease: int) -> None:
        self._store = store
        self._lease = lease
        self._needs: frozenset[str] = frozenset()
        self._met = MetRequirements()
        self._look_at: dict[str, float] = {}
        self.held_up = False
        self.suspects = Suspects()

    def due(self, asks: tuple[QueueRequest, ...], now: float) -> bool:
        """Return whether to look for all kinds of runs in these queues although there is plain work."""
        return any(now >= self._look_at.get(ask.queue, 0.0) for ask in asks)

    def look_soon(self) -> None:
        self._look_at.clear()

    async def claim(
        self,
        info: WorkerInfo,
        known: Mapping[str, int],
        asks: tuple[QueueRequest, ...],
        slots: int,
        now: float,
        *,
        exact: bool,
    ) -> OrderedClaims:
        """Claim runs; `slots`: how many can begin at once; `exact`: in the very order of their ages."""
        request = OrderedRequest(
            info.id, info.name, asks, known, self._lease, max(0, slots), self.suspects.level, self._met,
            self._needs, 0 if exact else _SLACK,
        )  # fmt: skip
        answer = await self._store.claim_in_order(request)
        if answer.learn:
            await self._learn(info)
            # Once: where new requirements come all the time, it would learn and never claim.
            request = msgspec.structs.replace(request, met=self._met, needs=self._needs, partial=True)
            answer = await self._store.claim_in_order(request)
            answer.missed = answer.missed or answer.learn  # what is new again is learnt soon
        self.held_up = answer.held_up
        # Without plain runs there is nothing that a claim of plain runs alone would find.
        again = now if answer.mixed or not answer.plain else now + _LOOK_EVERY
        self._look_at.update((ask.queue, again) for ask in asks)
        self.suspects.remember(answer.others)
        return answer

    async def _learn(self, info: WorkerInfo) -> None:
        """Work out which requirements this worker meets. One never changes under its id, so comparing ids is enough."""
        requirements = await self._store.known_requirements()
        self._needs = frozenset(requirements)
        self._met = met_by(info, requirements)
