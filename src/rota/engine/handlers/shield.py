"""Shield a run from cancellation while steps are open that must not be cancelled.

All open steps of an attempt share one shield in the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from rota.core.progress.control_flow import Cancelled
from rota.core.progress.notes import Notes, StepNote
from rota.errors import LeaseLost
from rota.store import Store
from rota.values.durations import in_micros

if TYPE_CHECKING:
    from rota.engine.handlers.attempt import Attempt


class Guard(Protocol):
    """The executor, which stops attempts."""

    def cancel(self, attempt: Attempt) -> None: ...

    def unshielded(self, attempt: Attempt) -> None:
        """Carry out a cancel that had to wait for the shield."""


class Shield:
    """Counter of open steps that must not be cancelled.

    `surely` repeats what the database could not do at once. The lock admits one change at a time, so that exactly the
    last step to end lowers the shield in the database.
    """

    def __init__(
        self,
        attempt: Attempt,
        store: Store,
        guard: Guard,
        until_available: Callable[[Callable[[], Awaitable[Any]]], Any],
    ) -> None:
        self._attempt = attempt
        self._notes = store.notes
        self._guard = guard
        self._until_available = until_available
        self._changing = asyncio.Lock()
        self._no = 0

    async def up(self) -> None:
        """Raise the shield, unless the run is asked to cancel or its lease is lost.

        The database decides the race between cancel and shield: both lock the run's row.
        """
        claim = self._attempt.claim
        async with self._changing:
            self._no += 1
            lease, another = (claim.run_id, claim.fence), self._attempt.shields > 0
            shielded = await self._until_available(lambda: self._notes.shield(*lease, self._no, another=another))
            if shielded is None:
                raise LeaseLost(claim.run_id, claim.fence)
            if not shielded:
                self._guard.cancel(self._attempt)
                raise Cancelled(f"run {claim.run_id} was cancelled")
            self._attempt.shields += 1

    async def down(self, note: StepNote) -> bool:
        """Write `note` of the step that ends and lower the shield if it was the last.

        Return False if the lease is gone.
        """
        attempt, notes = self._attempt, Notes(steps=(note,))
        grace = in_micros(attempt.handler.definition.cancel.grace)
        async with self._changing:
            try:
                if attempt.shields > 1:
                    gone = await self._until_available(lambda: self._notes.write(notes))
                else:
                    gone = await self._until_available(lambda: self._notes.unshield(notes, grace, self._no))
            finally:  # also if the lease is lost: the attempt ends, and its count must not block that
                attempt.shields -= 1
            self._guard.unshielded(attempt)
        return not gone
