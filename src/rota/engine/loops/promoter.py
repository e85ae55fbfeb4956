"""Make runs claimable when they are due or their rate opens again. Safe in any number of processes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from rota.engine.observability.meters import Meters
from rota.store import Store

_BATCH = 1_000
_HELD = timedelta(milliseconds=5)  # rest when a due run is locked by another promoter


class Promoter:
    """Loop that rests until the next run is due. It is woken by hints: a new run may be due sooner."""

    def __init__(
        self, store: Store, poll: timedelta, meters: Meters | None = None, opened: Callable[[], None] = lambda: None
    ) -> None:
        """`opened` is called when a rate has opened, which is sooner than a hint from the database arrives."""
        self._store = store
        self._opened = opened
        self._meters = meters or Meters()
        self._poll = poll

    def on_error(self) -> None:
        """Do nothing: no state is kept between steps."""

    async def step(self) -> timedelta:
        promoted = await self._store.promote(_BATCH)
        self._meters.promoted.add(promoted.count)
        if promoted.opened:
            self._opened()
        if promoted.next_in is None:
            return self._poll
        least = timedelta(0) if promoted.count or promoted.opened else _HELD
        return min(self._poll, max(least, timedelta(microseconds=promoted.next_in)))
