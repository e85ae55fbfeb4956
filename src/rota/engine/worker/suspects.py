"""Suspects, one at a time: a run whose attempt was lost may be what killed its worker, or only have been beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.core.runs.claim import AT_ONCE, SUSPECTS, Claim, ClaimRequest, QueueRequest
from rota.core.runs.outcome import Report
from rota.core.states import Outcome
from rota.store import Store

_LOOK_EVERY = 0.5


class Suspects:
    """Were two of them side by side, the one that kills its process would take attempts of the other again and again.

    A worker has one until its report is settled, not only until its handler is over: the next may end the process.
    """

    def __init__(self, store: Store, worker_id: str, known: Mapping[str, int], lease: int) -> None:
        self._store = store
        self._worker_id = worker_id
        self._known = known
        self._lease = lease
        self._held: tuple[str, int] | None = None
        self._look_at = 0.0

    @property
    def level(self) -> int:
        """How delicate the runs may be that are claimed into free slots now."""
        return SUSPECTS if self._held is None else AT_ONCE

    def due(self, now: float) -> bool:
        """Whether to look even though there is other work."""
        return self._held is None and now >= self._look_at

    async def claim(self, asks: tuple[QueueRequest, ...], now: float) -> list[Claim]:
        """The first run of each of some queues, whatever it is, but one suspect at most.

        A lost run keeps its place, and ordinary claims pass it over: sooner or later it is the first.
        """
        if self._held is not None or not asks:
            return []
        self._look_at = now + _LOOK_EVERY
        claims = await self._store.claim(ClaimRequest(self._worker_id, asks, self._known, self._lease, SUSPECTS))
        others = [claim for claim in claims if claim.suspect][1:]
        if others:  # before the first begins, which may be the end of this process
            await self._store.report([Report(o.run_id, o.fence, Outcome.HANDED_BACK, began=False) for o in others])
        return self.noted([claim for claim in claims if claim not in others])

    def noted(self, claims: Sequence[Claim]) -> list[Claim]:
        for claim in claims:
            if claim.suspect:
                self._held = (claim.run_id, claim.fence)
        return list(claims)

    def let_go(self, run_id: str, fence: int) -> bool:
        """Whether that was the one; then it is time to look for the next."""
        if self._held != (run_id, fence):
            return False
        self._held = None
        self._look_at = 0.0
        return True
