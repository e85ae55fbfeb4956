"""What a worker has claimed and not begun yet, in the order in which it will."""

from __future__ import annotations

from collections import deque

from rota.core.runs.claim import Claim


class Buffer(deque[Claim]):
    def take(self, run_id: str) -> bool:
        """Out of turn, because it is not to begin; whether it was there."""
        for place, claim in enumerate(self):
            if claim.run_id == run_id:
                del self[place]
                return True
        return False
