"""Which workers may have a run, told from what its job and its own options say, and not from what rota made of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from tests.simulation.application.coordination_jobs import EXTERNAL, LABELS, REPLICATED
from tests.simulation.application.data_jobs import DATA_EXTERNAL
from tests.simulation.application.jobs import JOBS

if TYPE_CHECKING:
    from tests.simulation.world.observer import Seen
    from tests.simulation.world.world import World

_REPLICAS = "select run_id, parent_id, worker, bound, cleared from rota_replica order by run_id"


class Row(msgspec.Struct, frozen=True):
    """Of `rota_replica`."""

    run_id: str
    parent_id: str
    worker: str | None
    bound: bool
    cleared: bool


class Policy(msgspec.Struct, frozen=True):
    """How many workers; None: all."""

    count: int | None
    allowed_failures: int


def policy_of(job: str) -> Policy:
    given: Any = REPLICATED[job]["replicas"]
    if isinstance(given, int):
        return Policy(given, 0)
    return Policy(None if given.get("all") else given["count"], given.get("allowed_failures", 0))


def rows(world: World) -> dict[str, Row]:
    found = (Row(str(id), str(parent), worker, bool(b), bool(c)) for id, parent, worker, b, c in _read(world))
    return {row.run_id: row for row in found}


def _read(world: World) -> Iterable[Any]:
    return world.backend.look(_REPLICAS)


def name_of(worker: str) -> str:
    return worker.rpartition("@")[0]


class Eligibility:
    def __init__(self, world: World) -> None:
        self._world = world

    def only_workers(self, seen: Seen) -> list[str]:
        """By name; none: any of them."""
        own = self._own(seen)
        if own.get("anyone"):
            return []
        return list(own.get("only_workers") or JOBS[seen.job].get("only_workers", ()))

    def may_have(self, seen: Seen, name: str) -> bool:
        only = self.only_workers(seen)
        labels = self._own(seen).get("labels") or JOBS[seen.job].get("labels", ())
        has = LABELS.get(name, "").split(",")
        known = {word for label in has for word in (label, label.partition("=")[0])}
        return (not only or name in only) and all(label in known for label in labels)

    def _own(self, seen: Seen) -> dict[str, Any]:
        """What the run says itself. A replica says what its run says."""
        id = seen.parent_id or seen.id
        found = self._world.backend.look(f"select overrides from rota_run where id = '{id}'")
        text = found[0][0] if found else None
        requirements: dict[str, Any] = (msgspec.json.decode(text).get("needs") if text else None) or {}
        return requirements

    def engines(self) -> list[str]:
        return [f"engine-{number + 1}" for number in range(self._world.script.engines)]

    def somebody_may_begin(self, seen: Seen) -> bool:
        """An engine is there that may have it now; of a replica, one that has none of the same run."""
        if seen.job in (*EXTERNAL, *DATA_EXTERNAL):
            return False
        return any(self.may_begin(seen, name) for name in self.engines())

    def may_begin(self, seen: Seen, name: str) -> bool:
        """A worker of that name may have it now: a replica, if it is its own or nobody's and the name has none."""
        if not self.may_have(seen, name):
            return False
        if seen.parent_id is None:
            return True
        known = rows(self._world)
        mine = known.get(seen.id)
        if mine is not None and mine.worker is not None:
            return mine.worker == name
        taken = {row.worker for row in known.values() if row.parent_id == seen.parent_id and not row.cleared}
        parent = self._world.observer.runs[seen.parent_id]
        return name not in taken and parent.conduct is not None and parent.conduct.cancel_at is None

    def lacks_workers(self, seen: Seen) -> bool:
        """Whether there are not enough for it, however long it waits."""
        if seen.job in (*EXTERNAL, *DATA_EXTERNAL):
            return False
        able = [name for name in self.engines() if self.may_have(seen, name)]
        if seen.job not in REPLICATED:
            return not able
        policy = policy_of(seen.job)
        if policy.count is None or seen.conduct is None:
            return len(able) < (policy.count or 1)
        mine = [row for row in rows(self._world).values() if row.parent_id == seen.id and not row.cleared]
        runs = self._world.observer.runs
        done = sum(1 for row in mine if (end := runs[row.run_id].end) and end.state == "succeeded")
        failed = sum(1 for row in mine if runs[row.run_id].end) - done
        if failed > policy.allowed_failures:  # it has to end, whoever is there
            return False
        used = {row.worker for row in mine if runs[row.run_id].end}
        return len([name for name in able if name not in used]) < policy.count - done
