"""Cancels wait while steps are open that must not be cancelled: one word to the database for all of them."""

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
    """Who stops attempts."""

    def cancel(self, attempt: Attempt) -> None: ...

    def unshielded(self, attempt: Attempt) -> None:
        """A cancel that had to wait need not wait any longer."""


class Shield:
    """`surely` repeats what the database could not do at once. One change at a time: the last one down says so."""

    def __init__(
        self, attempt: Attempt, store: Store, guard: Guard, surely: Callable[[Callable[[], Awaitable[Any]]], Any]
    ) -> None:
        self._attempt = attempt
        self._notes = store.notes
        self._guard = guard
        self._surely = surely
        self._changing = asyncio.Lock()
        self._no = 0

    async def up(self) -> None:
        """Not if the run was asked to stop, or is no longer ours."""
        claim = self._attempt.claim
        async with self._changing:
            self._no += 1
            lease, another = (claim.run_id, claim.fence), self._attempt.shields > 0
            shielded = await self._surely(lambda: self._notes.shield(*lease, self._no, another=another))
            if shielded is None:
                raise LeaseLost(claim.run_id, claim.fence)
            if not shielded:
                self._guard.cancel(self._attempt)
                raise Cancelled(f"run {claim.run_id} was cancelled")
            self._attempt.shields += 1

    async def down(self, note: StepNote) -> bool:
        """With what is to be said of the step that it was for. False: the lease is gone."""
        attempt, notes = self._attempt, Notes(steps=(note,))
        grace = in_micros(attempt.handler.definition.cancel.grace)
        async with self._changing:
            try:
                if attempt.shields > 1:
                    gone = await self._surely(lambda: self._notes.write(notes))
                else:
                    gone = await self._surely(lambda: self._notes.unshield(notes, grace, self._no))
            finally:
                attempt.shields -= 1
            self._guard.unshielded(attempt)
        return not gone
