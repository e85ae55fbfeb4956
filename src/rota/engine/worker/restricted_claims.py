"""Runs with needs, and replicas, as a worker looks for them: only if there are any, and into free slots only."""

from __future__ import annotations

from collections.abc import Mapping

from rota.core.runs.claim import Claim, RestrictedRequest
from rota.core.workers.requirements import MetRequirements, met_by
from rota.core.workers.worker import WorkerInfo
from rota.store import Store

_LOOK_EVERY = 0.2


class RestrictedClaims:
    """`waits`: one was seen while the buffer held others, which is let run dry. `more`: all free slots were taken.
    `missed`: somebody else was at one at that moment, so that it is worth another look soon."""

    def __init__(self, store: Store, lease: int) -> None:
        self._store = store
        self._lease = lease
        self._look_at = 0.0
        self._ids: frozenset[str] = frozenset()
        self.met = MetRequirements()
        self.waits = False
        self.more = False
        self.missed = False

    def due(self, now: float) -> bool:
        """Whether to look even though there is other work."""
        return self.waits or now >= self._look_at

    async def claim(self, info: WorkerInfo, jobs: Mapping[str, int], slots: int, solo: int, now: float) -> list[Claim]:
        """Without free slots it is but a look."""
        if slots <= 0 and self.waits:
            return []
        self._look_at = now + _LOOK_EVERY
        await self._learn(info)
        if not self.met:
            self.waits = self.more = self.missed = False
            return []
        request = RestrictedRequest(info.id, info.name, info.queues, jobs, self._lease, max(0, slots), solo, self.met)
        found = await self._store.claim_restricted(request)
        self.waits = found.waiting and slots <= 0
        self.more = found.waiting and slots > 0
        self.missed = found.missed
        return found.claims

    async def _learn(self, info: WorkerInfo) -> None:
        """Which needs there are; they never change, so their ids tell whether there are new ones."""
        known = await self._store.known_requirements()
        if self._ids != known.keys():
            self._ids = frozenset(known)
            self.met = met_by(info, known)
