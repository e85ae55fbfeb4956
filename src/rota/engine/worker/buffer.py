"""Claims that a worker holds but has not begun yet, in the order in which they will begin."""

from __future__ import annotations

from collections import deque

from rota.core.runs.claim import Claim


class Buffer(deque[Claim]):
    def take(self, run_id: str) -> Claim | None:
        """Remove the claim of `run_id`, which must not begin, and return it, if it was in the buffer."""
        for place, claim in enumerate(self):
            if claim.run_id == run_id:
                del self[place]
                return claim
        return None
