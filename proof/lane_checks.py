"""P6, checked after every commit: limits and overlap, counted by the rows themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proof.observing import Seen
    from proof.world import World

Finding = tuple[str, str]
_ALONE = ("skip", "queue_one", "queue_all", "cancel_previous")


def checks(world: World) -> list[Callable[[], Iterator[Finding]]]:
    lanes = Lanes(world)
    return [lanes.limits]


class Lanes:
    def __init__(self, world: World) -> None:
        self._world = world

    def limits(self) -> Iterator[Finding]:
        """Never more leases of a key than its limit."""
        held = [seen for seen in self._world.observer.runs.values() if seen.lease]
        narrow = [seen for seen in held if seen.job == "narrow"]
        if len(narrow) > 2:
            yield "P6", f"{len(narrow)} runs of a job with a limit of 2 at once: {_ids(narrow)}"
        keyed = Counter(seen.scope for seen in held if seen.job == "keyed")
        for scope, count in keyed.items():
            if count > 1:
                yield "P6", f"{count} runs of scope {scope} with a limit of 1 at once"


def _ids(runs: list[Seen]) -> str:
    return ", ".join(seen.id[-6:] for seen in runs)
