"""Runs for some workers only, and for each of several: who has them, how many there are, and how the whole ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests.simulation.application.coordination_jobs import EXTERNAL, REPLICATED
from tests.simulation.checks.coordination.eligibility import Eligibility, Policy, Row, name_of, policy_of, rows
from tests.simulation.world.observer import Change, Finding, Seen

if TYPE_CHECKING:
    from tests.simulation.world.world import World

REPLICAS, NEEDS = "replicas", "needs"
_MOVES = ("Store.", "_begin_some", "_look_at_some", "_stop", "_expire")


class ReplicaChecks:
    def __init__(self, world: World) -> None:
        self._world = world
        self._eligibility = Eligibility(world)
        self._children: dict[str, set[str]] = {}

    def of_changes(self) -> list[Callable[[Change], Iterator[Finding]]]:
        return [self.remembered, self.only_who_may, self.ends_with_its_replicas, self.taken_over_by_others]

    def of_commits(self) -> list[Callable[[], Iterator[Finding]]]:
        return [self.one_for_each_name, self.taken_from_who_may_not]

    def remembered(self, change: Change) -> Iterator[Finding]:
        """Not a check: which replicas a run has."""
        seen = change.after
        if seen is not None and seen.parent_id is not None:
            self._children.setdefault(seen.parent_id, set()).add(seen.id)
        yield from ()

    def only_who_may(self, change: Change) -> Iterator[Finding]:
        """It is claimed by a worker that has the name, and the labels, that it needs."""
        was, now = (seen.lease if seen else None for seen in (change.before, change.after))
        if now is None or change.after is None or change.after.job in EXTERNAL or (was and was.fence == now.fence):
            return
        name = name_of(now.worker)
        if not self._eligibility.may_have(change.after, name):
            only = self._eligibility.only_workers(change.after)
            yield NEEDS, f"claimed by {name}, which may not have it: {change.after}, only {only or 'by label'}"

    def taken_from_who_may_not(self) -> Iterator[Finding]:
        """Whoever may not have a run any more has lost it with the commit that says so, or was asked to stop before."""
        for seen in self._world.observer.live.values():
            lease = seen.lease
            if lease is None or lease.cancel_at is not None or seen.job in EXTERNAL:
                continue
            only = self._eligibility.only_workers(seen)
            if only and name_of(lease.worker) not in only:
                yield NEEDS, f"held by {lease.worker}, though only {only} may have it: {seen}"

    def one_for_each_name(self) -> Iterator[Finding]:
        """Of what counts, nobody has two; and there are not more that live or have succeeded than are wanted."""
        if not self._children:
            return
        known = rows(self._world)
        for parent_id in self._children:
            parent = self._world.observer.runs.get(parent_id)
            if parent is None or parent.conduct is None:
                continue
            mine = self._counted(parent_id, known)
            there = [seen for seen in mine if _lives(seen) or _state(seen) == "succeeded"]
            names = Counter(_who(seen) for seen in mine if _who(seen))
            twice = [name for name, times in names.items() if times > 1]
            policy = policy_of(parent.job)
            wanted = policy.count or _names(parent_id, known)
            if twice:
                yield REPLICAS, f"{twice[0]} has more than one replica: {self._tell(parent, known)}"
            if len(there) > wanted:
                yield (
                    REPLICAS,
                    f"{len(there)} live or have succeeded, and {wanted} are wanted: {self._tell(parent, known)}",
                )

    def ends_with_its_replicas(self, change: Change) -> Iterator[Finding]:
        """After the last of them: succeeded if so many have as are wanted, failed if more failed than may."""
        was, seen = change.before, change.after
        if was is None or was.conduct is None or seen is None or seen.end is None:
            return
        known = rows(self._world)
        live = [one for id in self._children.get(seen.id, ()) if _lives(one := self._world.observer.runs[id])]
        if live:
            yield REPLICAS, f"ended before its replicas: {self._tell(seen, known)}"
        mine = self._counted(seen.id, known)
        done = sum(_state(one) == "succeeded" for one in mine)
        failed = sum(_state(one) not in ("succeeded", "") for one in mine)
        names = _names(seen.id, known)
        right = _right_end(policy_of(seen.job), done, failed, names, cancelling=was.conduct.cancel_at is not None)
        if seen.end.state != right:
            yield REPLICAS, f"{seen.end.state}, not {right}, after {done} and {failed}: {self._tell(seen, known)}"

    def taken_over_by_others(self, change: Change) -> Iterator[Finding]:
        """What its worker lost or gave back is anybody's again, unless it is bound; what failed stays its own."""
        was, seen = change.before, change.after
        if was is None or was.lease is None or seen is None or seen.place is None or seen.parent_id is None:
            return
        row = rows(self._world).get(seen.id)
        sql = f"select outcome from rota_attempt where run_id = '{seen.id}' and fence = {was.lease.fence}"
        found = self._world.backend.look(sql)
        if row is None or row.bound or not found:
            return
        whose = None if found[0][0] in ("lost", "handed_back") else name_of(was.lease.worker)
        if row.worker != whose:
            yield (
                REPLICAS,
                f"{found[0][0]} by {was.lease.worker}, and it is of {row.worker} now, not of {whose}: {seen}",
            )

    def _counted(self, parent_id: str, known: dict[str, Row]) -> list[Seen]:
        """Those that were not cleared."""
        runs = self._world.observer.runs
        found = [id for id in sorted(self._children.get(parent_id, ())) if id in known and not known[id].cleared]
        return [runs[id] for id in found if id in runs]

    def _tell(self, parent: Seen, known: dict[str, Row]) -> str:
        ids = {parent.id, *self._children.get(parent.id, ())}
        whose = [
            f"{row.run_id[-6:]} {row.worker}{' cleared' * row.cleared}" for row in known.values() if row.run_id in ids
        ]
        lives = "".join(f"\n        {one}" for one in self._world.changes if one.run_id in ids)
        return f"{parent}, replicas {whose}{lives}"


def _names(parent_id: str, known: dict[str, Row]) -> int:
    """How many workers a run of `all` is for: those that may not do it any more have no name there."""
    return len({row.worker for row in known.values() if row.parent_id == parent_id and row.worker is not None})


def _right_end(policy: Policy, done: int, failed: int, names: int, *, cancelling: bool) -> str:
    enough = done >= (policy.count or names - (0 if cancelling else policy.allowed_failures))
    if cancelling:
        return "succeeded" if enough else "cancelled"
    if policy.count is None and not names:
        return "cancelled"
    return "failed" if failed > policy.allowed_failures else "succeeded" if enough else "still waiting"


def _lives(seen: Seen) -> bool:
    return seen.end is None


def _state(seen: Seen) -> str:
    return seen.end.state if seen.end else ""


def _who(seen: Seen) -> str:
    """Whoever has it, or has done it."""
    if seen.lease:
        return name_of(seen.lease.worker)
    return name_of(seen.end.worker or "") if seen.end and seen.end.state == "succeeded" else ""


def is_staffed(job: str) -> bool:
    return job in REPLICATED or job in ("graphic", "named")
