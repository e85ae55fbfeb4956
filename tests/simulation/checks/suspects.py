"""A run with two lost attempts may have killed its workers: a worker begins one of those at a time, and not two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests.simulation.world.history import Deed
from tests.simulation.world.observer import Change, Finding

if TYPE_CHECKING:
    from tests.simulation.world.world import World

_SUSPECT = 2
_TWICE = 2


class SuspectChecks:
    """`_claimed`: leases of suspects, by run and fence, as they were claimed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lost: Counter[str] = Counter()
        self._claimed: set[tuple[str, int]] = set()

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.lost_is_suspect]

    def lost_is_suspect(self, change: Change) -> Iterator[Finding]:
        """Until it ends; unless it is never claimed again after a loss, and so harms nobody."""
        was, now = change.before, change.after
        if now is None:
            return
        if was and was.lease and not now.lease and change.op == "Store.reap":
            self._lost[now.id] += 1
        twice = self._lost[now.id] >= _TWICE
        if now.place and twice and now.on_lost != "fail" and now.place.solo != _SUSPECT:
            yield "P12", f"two attempts of it were lost, and it waits among all others: {now}"
        if now.place and now.place.solo == _SUSPECT and not twice:
            yield "P12", f"{self._lost[now.id]} attempts of it were lost, and it waits as a suspect: {now}"
        if now.lease and was and was.place and was.place.solo == _SUSPECT:
            self._claimed.add((now.id, now.lease.fence))

    def began(self, deed: Deed) -> Iterator[Finding]:
        """Not beside another one: whichever kills the process would take an attempt of the other."""
        if (deed.run_id, deed.fence) not in self._claimed:
            return
        runs = self._world.observer.runs
        for run_id, fence in self._claimed - {(deed.run_id, deed.fence)}:
            lease = runs[run_id].lease if run_id in runs else None
            if lease and lease.fence == fence and lease.worker == deed.worker:
                yield "P12", f"two suspects at once: {runs[run_id]}, and {deed}"
