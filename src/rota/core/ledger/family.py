"""Family of a run: the runs that it depends on, that depend on it, its retries and its replicas, as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from rota.core.states import RunState
from rota.values.scope import Scope

MOST_MEMBERS = 500
"""Most runs of a family that one answer has."""


class Kinship(StrEnum):
    """Why two runs are of one family."""

    DEPENDENCY = "dependency"
    REPLICA = "replica"
    RETRY = "retry"


class FamilyLink(msgspec.Struct, frozen=True, kw_only=True, rename={"from_id": "from", "to_id": "to"}):
    """Link from an earlier run to a later one that was made because of it, or waits for it."""

    from_id: str
    """Id of the predecessor, of the parent of a replica, or of the run that was retried."""
    to_id: str
    """Id of the run that follows, replicates or retries it."""
    kind: str
    """`dependency`, `replica` or `retry`."""
    on: str | None = None
    """When a dependent run may start: after `success`, or after any `end`."""


class FamilyRun(msgspec.Struct, frozen=True, kw_only=True):
    """Run in a family. If it was pruned, only its id is known."""

    id: str
    job: str | None = None
    state: RunState | None = None
    queue: str | None = None
    scope: Scope | None = None
    schedule: str | None = None
    attempt: int = 0
    worker_id: str | None = None
    """Worker that runs it, or ran it last."""
    created_at: datetime | None = None
    run_at: datetime | None = None
    """When it was due."""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    percentage: float | None = None
    """Progress that it has reported."""
    more: bool = False
    """True if it has links that lead to runs which are left out."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that are linked with one another, directly or through others."""

    items: Sequence[FamilyRun]
    """Runs, the nearest to the one asked about first."""
    links: Sequence[FamilyLink]
    """What links them, each from an earlier run to a later one."""
    truncated: bool
    """True if runs are left out; `more` says where."""


Edge = tuple[str, str, Kinship, str | None]
"""(earlier run, later run, kinship, `on`)"""


class Growth:
    """Family that grows by one round of links at a time, nearest runs first, up to `limit` runs."""

    def __init__(self, run_id: str, limit: int) -> None:
        self.ids: dict[str, int] = {run_id: 0}
        """Members, each with its distance."""
        self._limit = limit
        self._edges: dict[Edge, None] = {}

    def grow(self, edges: Iterable[Edge], visible: Iterable[str]) -> list[str]:
        """Take in the runs at the other ends of these links as far as there is room; return the new ones."""
        allowed = set(visible)
        distance = max(self.ids.values()) + 1
        new: list[str] = []
        for edge in edges:
            if not allowed.issuperset(edge[:2]):
                continue
            self._edges[edge] = None
            for id in edge[:2]:
                if id not in self.ids and len(self.ids) < self._limit:
                    self.ids[id] = distance
                    new.append(id)
        return new

    def family(self, runs: Mapping[str, FamilyRun], cut: Iterable[str]) -> Family:
        """Return the family. `cut`: members that have more links than were read."""
        open_ends = set(cut)
        links = []
        for before, after, kind, on in self._edges:
            if before in self.ids and after in self.ids:
                links.append(FamilyLink(from_id=before, to_id=after, kind=kind.value, on=on))
            else:
                open_ends.add(before if before in self.ids else after)
        items = [runs.get(id) or FamilyRun(id=id) for id in self.ids]
        return Family(
            items=[msgspec.structs.replace(run, more=True) if run.id in open_ends else run for run in items],
            links=links,
            truncated=bool(open_ends),
        )
