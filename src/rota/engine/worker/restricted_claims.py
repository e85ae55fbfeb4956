"""Claim restricted runs (those with requirements, and replicas), only if there are any and only into free slots."""

from __future__ import annotations

from collections.abc import Mapping

from rota.core.runs.claim import Claim, RestrictedRequest
from rota.core.workers.requirements import MetRequirements, met_by
from rota.core.workers.worker import WorkerInfo
from rota.store import Store

_LOOK_EVERY = 0.2


class RestrictedClaims:
    """State of one claim path.

    `waits`: a run was seen while the buffer was not empty; the buffer is drained for it. `more`: all free slots were
    taken and more runs wait. `missed`: another worker had locked a run, so look again soon.
    """

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
        """Return whether to look although there is other work."""
        return self.waits or now >= self._look_at

    async def claim(self, info: WorkerInfo, jobs: Mapping[str, int], slots: int, solo: int, now: float) -> list[Claim]:
        """Claim at most `slots` runs. With no free slots, only look whether one waits."""
        if slots <= 0 and self.waits:
            return []
        self._look_at = now + _LOOK_EVERY
        await self._learn(info)
        if not self.met:
            self.waits = self.more = self.missed = False
            return []
        request = RestrictedRequest(info.id, info.name, info.queues, jobs, self._lease, max(0, slots), solo, self.met)
        answer = await self._store.claim_restricted(request)
        self.waits = answer.waiting and slots <= 0
        self.more = answer.waiting and slots > 0
        self.missed = answer.missed
        return answer.claims

    async def _learn(self, info: WorkerInfo) -> None:
        """Work out which requirements this worker meets, if new ones appeared.

        A requirement never changes under its id, so comparing ids is enough.
        """
        requirements = await self._store.known_requirements()
        if self._ids != requirements.keys():
            self._ids = frozenset(requirements)
            self.met = met_by(info, requirements)
