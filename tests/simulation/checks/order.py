"""P30: a worker does not claim a run while one of higher priority has waited in the same queue for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests.simulation.world.observer import Change, Finding, Place, Seen

if TYPE_CHECKING:
    from tests.simulation.world.world import World

_OPEN, _AT_ONCE = 0, 1
_A_WHILE = 1.0  # seconds: a worker that buffers looks at the head of its queue twice a second
_PAUSES = "select name from rota_pause"


class OrderChecks:
    """`_claimed`: what the commit being looked at has claimed; `_since`: when a run began to wait as it does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._claimed: list[tuple[Change, Place]] = []
        self._since: dict[str, float] = {}
        self._jobs: dict[str, set[str]] = defaultdict(set)

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.collect]

    def of_commits(self) -> list[Callable[[], Iterator[Finding]]]:
        return [self.in_order]

    def collect(self, change: Change) -> Iterator[Finding]:
        was, now = change.before, change.after
        if now is not None and now.place and (was is None or was.place != now.place):
            self._since[now.id] = change.at
        if now is not None and now.lease and was is not None and was.place:
            self._claimed.append((change, was.place))
            self._jobs[change.worker].add(now.job)
        yield from ()

    def in_order(self) -> Iterator[Finding]:
        claimed, self._claimed = self._claimed, []
        if not claimed:
            return
        paused = {name for (name,) in self._world.backend.look(_PAUSES)}
        for change, place in claimed:
            for seen in self._world.observer.live.values():
                if self._comes_before(seen, place, change) and not paused & {seen.job, place.queue}:
                    yield "P30", f"{change.run_id[-6:]} (rank {place.rank}) was claimed before {seen}"

    def _comes_before(self, seen: Seen, claimed: Place, change: Change) -> bool:
        """Any worker that knows its job may have it: one of a job that this worker has claimed before.

        What a claim continues after is decided when it is sent: of what began to wait on its way it knows nothing.
        """
        place = seen.place
        asked_at = change.at if change.asked_at is None else change.asked_at
        return (
            place is not None
            and place.hold == _OPEN
            and place.solo <= _AT_ONCE
            and place.queue == claimed.queue
            and place.rank < claimed.rank
            and seen.job in self._jobs[change.worker]
            and asked_at - self._since.get(seen.id, asked_at) > _A_WHILE
        )
