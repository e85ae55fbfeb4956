"""Claim suspects one at a time: a run whose attempt was lost may be what killed its worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.core.runs.claim import AT_ONCE, SUSPECTS, Claim, ClaimRequest, QueueRequest
from rota.core.runs.outcome import Report
from rota.core.states import Outcome
from rota.store import Store

_LOOK_EVERY = 0.5


class Suspects:
    """The one suspect that a worker may hold.

    If two suspects ran side by side, the one that kills its process would cost the other attempt after attempt. A
    suspect counts as held until its report is settled, not only until its handler returns: the next one may end the
    process before the report is written.
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
        """Return the highest `solo` level that may be claimed into free slots now."""
        return SUSPECTS if self._held is None else AT_ONCE

    def due(self, now: float) -> bool:
        """Return whether to look although there is other work."""
        return self._held is None and now >= self._look_at

    async def claim(self, asks: tuple[QueueRequest, ...], now: float) -> list[Claim]:
        """Claim the first run of each requested queue, of whatever level, but at most one suspect.

        A lost run keeps its place in the queue while ordinary claims skip it, so sooner or later it is the first.
        """
        if self._held is not None or not asks:
            return []
        self._look_at = now + _LOOK_EVERY
        claims = await self._store.claim(ClaimRequest(self._worker_id, asks, self._known, self._lease, SUSPECTS))
        surplus = [claim for claim in claims if claim.suspect][1:]
        if surplus:  # hand them back before the first begins: it may kill this process
            await self._store.report(
                [Report(claim.run_id, claim.fence, Outcome.HANDED_BACK, began=False) for claim in surplus]
            )
        return self.remember([claim for claim in claims if claim not in surplus])

    def remember(self, claims: Sequence[Claim]) -> list[Claim]:
        """Remember the suspect among `claims`, if any; return the claims."""
        for claim in claims:
            if claim.suspect:
                self._held = (claim.run_id, claim.fence)
        return list(claims)

    def release(self, run_id: str, fence: int) -> bool:
        """Forget the suspect if it is this one, and look for the next at once; return whether it was."""
        if self._held != (run_id, fence):
            return False
        self._held = None
        self._look_at = 0.0
        return True
