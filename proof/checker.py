"""Watches a world keep its promises: each commit as it happens, and the whole when all is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from proof import end_checks, lane_checks, run_checks
from proof.diary import Deed, StepDeed
from proof.elsewhere_checks import ElsewhereChecks
from proof.note_checks import NoteChecks
from proof.noting import Effect, Note
from proof.observing import Change, Finding
from proof.suspect_checks import SuspectChecks
from proof.timing_checks import Timing
from proof.trail_checks import trails_are_true

if TYPE_CHECKING:
    from proof.world import World


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
        self._timing = Timing(world)
        self._notes = NoteChecks(world)
        self._suspects = SuspectChecks(world)
        self._elsewhere = ElsewhereChecks(world)
        self._of_changes: list[Callable[[Change], Iterator[Finding]]] = [
            *run_checks.checks(world),
            *lane_checks.of_changes(world),
            *self._timing.of_changes(),
            *self._notes.of_changes(),
            *self._suspects.of_changes(),
            *self._elsewhere.of_changes,
        ]
        self._of_commits: list[Callable[[], Iterator[Finding]]] = [
            *lane_checks.of_commits(world),
            *self._timing.of_commits(),
            *self._elsewhere.of_commits,
        ]

    def changed(self, change: Change) -> None:
        for check in self._of_changes:
            for promise, message in check(change):
                self.violate(promise, f"{message}\n      by: {change}")

    def committed(self, op: str) -> None:
        checks = self._timing.of_commits() if op in _MOVES_NOTHING else self._of_commits
        for check in checks:
            for promise, message in check():
                self.violate(promise, f"{message}, after {op}")

    def noted(self, before: Note | None, after: Note | None, op: str, worker: str) -> None:
        """A commit changed something that a run says of itself."""
        self._found(self._notes.noted(before, after, op, worker))

    def kept(self, change: Change) -> None:
        self._found(self._notes.kept(change))

    def began(self, deed: Deed) -> None:
        self._found(self._suspects.began(deed))

    def did(self, deed: StepDeed) -> None:
        """A handler, in a step: at this moment it can be compared with what is recorded."""
        self._found(self._notes.did(deed))

    def did_in_transaction(self, effect: Effect) -> None:
        self._found(self._notes.committed(effect))

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
        for promise, message in self._timing.left_behind(worker, since):
            self.violate(promise, message)

    def tick(self) -> None:
        """Nothing was written, but time passes."""
        for check in self._timing.of_commits():
            for promise, message in check():
                self.violate(promise, message)

    def before_the_end(self) -> None:
        """While everything still goes on by itself."""
        self._found(self._timing.nothing_is_overdue())
        self._found(trails_are_true(self._world, live=True))

    def at_the_end(self) -> None:
        for find in self._elsewhere.at_the_end:
            self._found(find())
        for check in end_checks.CHECKS:
            for promise, message in check(self._world):
                self.violate(promise, message)

    def violate(self, promise: str, message: str) -> None:
        """The first one counts: what follows may be its consequence. The world ends with it."""
        if self.violation is None:
            self.violation = Violation(promise, message, self._world.loop.time())
        self._world.loop.halted = True
