"""Watches a world keep its promises: each commit as it happens, and the whole when all is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from tests.simulation.checks import final_state, limits, runs
from tests.simulation.checks.audit_trail import trails_are_true
from tests.simulation.checks.coordination.suite import CoordinationChecks
from tests.simulation.checks.latency import Latency
from tests.simulation.checks.losses import LossChecks
from tests.simulation.checks.order import OrderChecks
from tests.simulation.checks.planner_model import PlannerModel
from tests.simulation.checks.progress import ProgressChecks
from tests.simulation.checks.suspects import SuspectChecks
from tests.simulation.world.history import Deed, StepDeed
from tests.simulation.world.note_observer import Effect, Note
from tests.simulation.world.observer import Change, Finding

if TYPE_CHECKING:
    from tests.simulation.world.world import World


QUIETENS = "quieten"
_MOVES_NOTHING = ("NoteStore.write", "NoteStore.shield", "NoteStore.unshield", "Store.extend")
"""No run begins, ends or waits because of these; should it, that is found as a change of a run."""


class Violation(msgspec.Struct, frozen=True):
    promise: str
    message: str
    at: float

    def __str__(self) -> str:
        return f"{self.promise} broken at {self.at:.3f}s: {self.message}"


class Checker:
    def __init__(self, world: World) -> None:
        self.violation: Violation | None = None
        self._world = world
        self._latency = Latency(world)
        self._notes = ProgressChecks(world)
        self._suspects = SuspectChecks(world)
        self._order = OrderChecks(world)
        self._coordination = CoordinationChecks(world)
        self._losses = LossChecks(world)
        self._planner_model = PlannerModel(world.backend)
        self._of_changes: list[Callable[[Change], Iterator[Finding]]] = [
            *runs.checks(world),
            *self._losses.of_changes(),
            *limits.of_changes(world),
            *self._latency.of_changes(),
            *self._notes.of_changes(),
            *self._suspects.of_changes(),
            *self._order.of_changes(),
            *self._coordination.of_changes,
        ]
        self._of_commits: list[Callable[[], Iterator[Finding]]] = [
            *limits.of_commits(world),
            *self._latency.of_commits(),
            *self._order.of_commits(),
            *self._coordination.of_commits,
            self._planner_model.in_the_model,
        ]

    def lost(self) -> None:
        """The database lost its last commits: from now on only what holds across that is checked."""
        self._losses.happened = True
        self._of_changes = self._losses.of_changes()
        self._planner_model.look_anew()
        self._of_commits = [*self._losses.of_commits(), self._planner_model.in_the_model]

    def changed(self, change: Change) -> None:
        for check in self._of_changes:
            for promise, message in check(change):
                self.violate(promise, f"{message}\n      by: {change}")

    def committed(self, op: str) -> None:
        if op == QUIETENS:  # several commits at once
            self._planner_model.look_anew()
        checks = self._latency.of_commits() if op in _MOVES_NOTHING and not self._losses.happened else self._of_commits
        for check in checks:
            for promise, message in check():
                self.violate(promise, f"{message}, after {op}")

    def noted(self, before: Note | None, after: Note | None, op: str, worker: str) -> None:
        """A commit changed something that a run says of itself."""
        self._found_unless_lost(self._notes.noted(before, after, op, worker))

    def kept(self, change: Change) -> None:
        self._found_unless_lost(self._notes.kept(change))

    def began(self, deed: Deed) -> None:
        self._found_unless_lost(self._suspects.began(deed))
        self._found(self._losses.began(deed))

    def did(self, deed: StepDeed) -> None:
        """A handler, in a step: at this moment it can be compared with what is recorded."""
        self._found_unless_lost(self._notes.did(deed))

    def did_in_transaction(self, effect: Effect) -> None:
        self._found_unless_lost(self._notes.committed(effect))

    def _found_unless_lost(self, findings: Iterator[Finding]) -> None:
        if not self._losses.happened:
            self._found(findings)

    def _found(self, findings: Iterator[Finding]) -> None:
        for promise, message in findings:
            self.violate(promise, message)

    def repeated(self, op: str, first: Callable[[], object], second: Callable[[], object]) -> None:
        """P10: what is said again gets the same answer."""
        if op == "Store.report":
            refused = [getattr(answer(), "refused", None) for answer in (first, second)]
            if refused[0] != refused[1]:
                self.violate("P10", f"a report that refused {refused[0]} refused {refused[1]} when it was repeated")

    def stopped(self, worker: str, since: float) -> None:
        """By itself, as it was asked to `since` then."""
        self._found_unless_lost(self._latency.left_behind(worker, since))

    def tick(self) -> None:
        """Nothing was written, but time passes."""
        for check in self._latency.of_commits():
            self._found_unless_lost(check())

    def before_the_end(self) -> None:
        """While everything still goes on by itself."""
        self._found_unless_lost(self._latency.nothing_is_overdue())
        self._found_unless_lost(trails_are_true(self._world, live=True))

    def at_the_end(self) -> None:
        if self._losses.happened:
            self._found(self._losses.at_the_end())
            return
        for find in self._coordination.at_the_end:
            self._found(find())
        for check in final_state.CHECKS:
            for promise, message in check(self._world):
                self.violate(promise, message)

    def violate(self, promise: str, message: str) -> None:
        """The first one counts: what follows may be its consequence. The world ends with it."""
        if self.violation is None:
            self.violation = Violation(promise, message, self._world.loop.time())
        self._world.loop.halted = True
