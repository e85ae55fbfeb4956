"""Promises that hold although the database loses its last commits: P9, P10, P12, P26.

What a loss takes back cannot be promised: that an acknowledged run is there, that what was final stays so, that nothing
is executed twice. But no fence is given twice, so nobody writes what is not his; and everything comes to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests.simulation.checks import limits
from tests.simulation.checks.final_state import all_is_final
from tests.simulation.checks.orphans import orphans
from tests.simulation.checks.runs import Memory, in_the_model

if TYPE_CHECKING:
    from tests.simulation.world.history import Deed
    from tests.simulation.world.observer import Change, Finding
    from tests.simulation.world.world import World


class LossChecks:
    def __init__(self, world: World) -> None:
        self.happened = False
        self._world = world
        self._memory = Memory(world)
        self._given: dict[tuple[str, int], str] = {}
        self._highest: dict[str, int] = {}
        self._begun: set[tuple[str, int]] = set()

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        if not self.happened:
            return [self.given_once]
        memory = self._memory
        return [
            *(self.given_once, in_the_model, memory.in_one_place, memory.final_is_final),
            *(memory.only_the_holder_ends_it, memory.only_those_outside_end_it),
        ]

    def of_commits(self) -> list[Callable[[], Iterator[Finding]]]:
        lanes = limits.Lanes(self._world)
        return [lanes.limits, lanes.unique]

    def given_once(self, change: Change) -> Iterator[Finding]:
        """P26: a claim's fence is larger than all that were given for this run, also those that are lost."""
        before, after = change.before, change.after
        lease = after.lease if after else None
        if lease is None or (before and before.lease and before.lease.fence == lease.fence):
            return
        holder = self._given.get((change.run_id, lease.fence))
        if holder is not None:
            yield "P26", f"fence {lease.fence} was given to {holder} before, and now to {lease.worker}"
        elif lease.fence <= self._highest.get(change.run_id, 0):
            yield "P26", f"fence {lease.fence} is given after {self._highest[change.run_id]}"
        self._given[change.run_id, lease.fence] = lease.worker
        self._highest[change.run_id] = max(lease.fence, self._highest.get(change.run_id, 0))

    def began(self, deed: Deed) -> Iterator[Finding]:
        """P26, as handlers see it."""
        key = deed.run_id, deed.fence
        if key in self._begun:
            yield "P26", f"begun twice under one fence: {deed}"
        self._begun.add(key)

    def at_the_end(self) -> Iterator[Finding]:
        yield from all_is_final(self._world)
        yield from orphans(self._world)
