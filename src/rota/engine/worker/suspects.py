"""Suspects run one at a time: a run whose attempt was lost may be what killed its worker."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.runs.claim import AT_ONCE, SUSPECTS, Claim


class Suspects:
    """The one suspect that a worker may hold.

    If two suspects ran side by side, the one that kills its process would cost the other attempt after attempt. A
    suspect counts as held until its report is settled, not only until its handler returns: the next one may end the
    process before the report is written.
    """

    def __init__(self) -> None:
        self._held: tuple[str, int] | None = None

    @property
    def level(self) -> int:
        """Return the highest `solo` level that may be claimed into free slots now."""
        return SUSPECTS if self._held is None else AT_ONCE

    def remember(self, claims: Sequence[Claim]) -> None:
        """Remember the suspect among `claims`, if any."""
        for claim in claims:
            if claim.suspect:
                self._held = (claim.run_id, claim.fence)

    def release(self, run_id: str, fence: int) -> bool:
        """Forget the suspect if it is this one; return whether it was."""
        if self._held != (run_id, fence):
            return False
        self._held = None
        return True
