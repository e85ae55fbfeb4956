"""One look for all loops of an idle process, instead of one for each of them every second.

While hints arrive, a loop that has nothing to do is held until it has: until a plan time, until a run is due, or until
it is woken. A hint may be lost, so a look at the database repeats every `INTERVAL` polls: it wakes whoever has work to
do, and holds the others on. A hold ends by itself if no look prolongs it. Without hints, or without an answer, nobody
is held: each loop polls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import NamedTuple

from rota.engine.observability.meters import Meters
from rota.engine.rest import Rest
from rota.store import Store
from rota.store.workers.due_work import DueWork

INTERVAL = 20
"""Polls from one look to the next, while nothing is due: within so long a lost hint is made good."""
_AFTER_HINTS = 5
_LONGEST_HOLD = 3  # looks that may fail to come before a hold ends by itself


class Held(NamedTuple):
    """Something that rests, and how soon it has something to do (µs), by what was found; None: not by itself.

    `note` is called when a look has found nothing for it.
    """

    rest: Rest
    due_in: Callable[[DueWork], int | None]
    note: Callable[[], None] = lambda: None


class IdleLook:
    """Loop that looks, and holds or wakes others. `held` names them, anew for each look: workers come and go."""

    def __init__(
        self,
        store: Store,
        poll: timedelta,
        lease: timedelta,
        queues: Callable[[], Iterable[str]],
        providers: Iterable[str],
        held: Callable[[], list[Held]],
        meters: Meters | None = None,
    ) -> None:
        self._store = store
        self._poll = poll
        # The reaper, held, learns of a lease with the next look, and then waits a heartbeat, a third of a lease at
        # most: it must be ready when the lease expires.
        self._interval = max(poll, min(INTERVAL * poll, lease * 2 / 3))
        self._queues, self._providers, self._held = queues, providers, held
        self._meters = meters or Meters()

    @property
    def after_hints(self) -> timedelta:
        """Time from a hint to the next look: until then, whoever was woken polls."""
        return min(self._interval, _AFTER_HINTS * self._poll)

    def on_error(self) -> None:
        """Hold nobody: what is due is not known."""
        for part in self._held():
            part.rest.release()

    async def step(self) -> timedelta:
        held = self._held()
        if not self._store.due_work.is_told:
            self.on_error()
            return self.after_hints
        turns = [part.rest.turns for part in held]
        work = await self._store.due_work.look(list(self._queues()), list(self._providers))
        self._meters.learn_time(work.now, self._store.clock.monotonic())
        for part, turn in zip(held, turns, strict=True):
            if part.rest.turns == turn:  # else it was woken, or stepped, after the look began
                self._apply(part, part.due_in(work))
        return self._interval if all(part.rest.is_held for part in held) else self.after_hints

    def _apply(self, part: Held, due_in: int | None) -> None:
        # A poll early, so that a loop prepares for its time as if it had polled all along.
        poll, longest = self._poll.total_seconds(), _LONGEST_HOLD * self._interval.total_seconds()
        seconds = longest if due_in is None else min(longest, due_in / 1_000_000 - poll)
        if seconds <= 0:
            part.rest.release()
        elif part.rest.hold(seconds, poll):
            part.note()
