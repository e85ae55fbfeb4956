"""Runs that follow others: none begins too early, none ends in vain without cause, and none waits for what is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from rota.values.actor import POLICY
from tests.simulation.clients.dependencies import Edge
from tests.simulation.world.observer import Change, Finding, Seen

if TYPE_CHECKING:
    from tests.simulation.world.world import World

AFTER = "after"
_DEPENDENCY = f"{POLICY}dependency"
_ENDS = {"skip": "skipped", "cancel": "cancelled"}


class DependencyChecks:
    """Who is to follow whom is known from what clients asked for; the number in a payload tells which run it became."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._runs: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._ends: dict[str, str] = {}
        self._waiting: dict[str, list[Edge]] = {}

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.remembered, self.not_too_early, self.in_vain_for_a_reason]

    def of_commits(self) -> list[Callable[[], Iterator[Finding]]]:
        return [self.goes_on_at_once]

    def remembered(self, change: Change) -> Iterator[Finding]:
        """Not a check: which run is which, and how each ended."""
        seen = change.after
        if seen is None:
            return
        if change.before is None and seen.retry_of is None and seen.parent_id is None and seen.schedule_id is None:
            number = msgspec.json.decode(seen.payload)["n"]
            if number in self._world.diary.families:
                self._runs[number] = seen.id
                self._numbers[seen.id] = number
                self._waiting[seen.id] = self._world.diary.families[number]
        if seen.end is not None:
            self._ends[seen.id] = seen.end.state
            self._waiting.pop(seen.id, None)
        yield from ()

    def _edges(self, run_id: str) -> list[Edge]:
        number = self._numbers.get(run_id)
        return [] if number is None else self._world.diary.families[number]

    def _end_of(self, edge: Edge) -> str | None:
        """How the first one ended; None: not yet."""
        run_id = self._runs.get(edge.first) if isinstance(edge.first, int) else edge.first
        return self._ends.get(run_id) if run_id is not None else None

    def _missed(self, edge: Edge) -> bool:
        end = self._end_of(edge)
        return edge.on == "success" and end is not None and end != "succeeded"

    def not_too_early(self, change: Change) -> Iterator[Finding]:
        """It is claimed, or begins to conduct, or may be, after all that it follows have ended as they must."""
        seen = change.after
        if seen is None or seen.id not in self._numbers or not _may_begin(seen):
            return
        for edge in self._edges(seen.id):
            end = self._end_of(edge)
            if end is None:
                yield AFTER, f"it may begin before the end of what it follows: {self._tell(seen, edge)}"
            elif self._missed(edge):
                yield AFTER, f"it may begin though what it needs was {end}: {self._tell(seen, edge)}"

    def in_vain_for_a_reason(self, change: Change) -> Iterator[Finding]:
        """It is skipped or cancelled by itself if a success that it needs did not come, and as it says."""
        seen = change.after
        end = seen.end if seen else None
        if seen is None or end is None or end.cancelled_by != _DEPENDENCY:
            return
        causes = [edge for edge in self._edges(seen.id) if edge.on == "success" and self._failed_by_now(edge)]
        if not causes:
            yield AFTER, f"it was {end.state}, though nothing that it follows failed: {self._tell(seen)}"
        elif end.state not in {_ENDS[edge.otherwise] for edge in causes}:
            yield AFTER, f"it was {end.state}, and not as it asked: {self._tell(seen, *causes)}"

    def _failed_by_now(self, edge: Edge) -> bool:
        """Also by this commit, which may have changed the first one, too."""
        run_id = self._runs.get(edge.first) if isinstance(edge.first, int) else edge.first
        now = self._world.observer.runs.get(run_id or "")
        state = self._ends.get(run_id or "") or (now.end.state if now and now.end else None)
        return state != "succeeded" if state is not None or now is None else self._ends_in_this_commit(now)

    def _ends_in_this_commit(self, seen: Seen) -> bool:
        found = self._world.backend.look(f"select state from rota_run where id = '{seen.id}'")
        return bool(found) and found[0][0] is not None and found[0][0] != "succeeded"

    def goes_on_at_once(self) -> Iterator[Finding]:
        """Nothing waits for what is over: with the last end it goes on, or ends in vain."""
        for run_id, edges in self._waiting.items():
            seen = self._world.observer.runs.get(run_id)
            if seen is None or seen.place is None:
                continue
            missed = [edge for edge in edges if self._missed(edge)]
            if missed:
                yield AFTER, f"it waits, though a success that it needs did not come: {self._tell(seen, *missed)}"
            elif seen.place.hold == 3 and all(self._end_of(edge) is not None for edge in edges):
                yield AFTER, f"it waits, though all that it follows have ended: {self._tell(seen, *edges)}"

    def _tell(self, seen: Seen, *edges: Edge) -> str:
        told = [f"{edge.first} ({edge.on}, {edge.otherwise}) {self._end_of(edge)}" for edge in edges]
        ids = {self._runs.get(edge.first) if isinstance(edge.first, int) else edge.first for edge in edges} | {seen.id}
        lives = "".join(f"\n        {one}" for one in self._world.changes if one.run_id in ids)
        return f"{seen}, after {'; '.join(told) or 'nothing'}{lives}"


def _may_begin(seen: Seen) -> bool:
    return bool(seen.lease or seen.conduct or seen.external or (seen.place and seen.place.hold != 3))
