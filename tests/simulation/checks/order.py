"""P30: a worker does not claim a run while another one that comes first has waited in the same queue for a while."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests.simulation.application.data_jobs import DATA_JOBS
from tests.simulation.checks.coordination.eligibility import Eligibility, name_of
from tests.simulation.script.entries import SetQuota
from tests.simulation.world.observer import Change, Finding, Place, Seen

if TYPE_CHECKING:
    from tests.simulation.world.world import World

_OPEN, _LIMITED, _RESTRICTED, _AT_ONCE = 0, 2, 6, 1
_A_WHILE = 1.0  # seconds: a worker that buffers looks at the head of its queue twice a second
_SLACK = 1_000_000  # µs: of the same priority, one of another kind may be half a second older
_PAUSES = "select name from rota_pause"
_SLOTS = {"narrow": (2, None), "keyed": (None, 1), "nested": (2, 1)}
"""How many runs of a job may be under way, and how many of one scope."""


class OrderChecks:
    """`_claimed`: what the commit being looked at has claimed; `_since`: when a run began to wait as it does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._eligibility = Eligibility(world)
        self._room = Room(world)
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
        self._room.collect(change)
        yield from ()

    def in_order(self) -> Iterator[Finding]:
        claimed, self._claimed = self._claimed, []
        self._room.look()
        paused = {name for (name,) in self._world.backend.look(_PAUSES)} if claimed else set()
        for change, place in claimed:
            for seen in self._world.observer.live.values():
                if self._comes_before(seen, place, change) and not paused & {seen.job, place.queue}:
                    yield "P30", f"{change.run_id[-6:]} (rank {place.rank}) was claimed before {seen}"

    def _comes_before(self, seen: Seen, claimed: Place, change: Change) -> bool:
        """This worker may have it, and knows its job: it has claimed a run of that job before.

        What a claim continues after is decided when it is sent: of what began to wait on its way it knows nothing.
        """
        place = seen.place
        asked_at = change.at if change.asked_at is None else change.asked_at
        return (
            place is not None
            and place.hold in (_OPEN, _RESTRICTED, _LIMITED)
            and place.solo <= _AT_ONCE
            and place.queue == claimed.queue
            and (place.rank < claimed.rank or (place.rank == claimed.rank and _is_older(place, claimed)))
            and seen.job in self._jobs[change.worker]
            and seen.job
            not in DATA_JOBS  # a worker learns of a new version later; a next part may be for those outside
            and asked_at - self._since.get(seen.id, asked_at) > _A_WHILE
            and (place.hold != _RESTRICTED or self._eligibility.may_begin(seen, name_of(change.worker)))
            and (place.hold != _LIMITED or self._room.was_there(seen, asked_at))
        )


def _is_older(place: Place, claimed: Place) -> bool:
    """Return whether it comes before by age. A run of a limit with keys begins in place of the oldest of that limit."""
    return claimed.limit_key is None and place.run_at + _SLACK < claimed.run_at


class Room:
    """Which limits have room, counted by what jobs declare. `_full`: those that have none; `_until`: until when."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._has_quotas = any(isinstance(entry, SetQuota) for entry in world.script.entries)
        self._full: set[tuple[str, object]] = set()
        self._until: dict[tuple[str, object], float] = {}
        self._touched_at: float | None = None

    def collect(self, change: Change) -> None:
        if any(seen is not None and seen.job in _SLOTS for seen in (change.before, change.after)):
            self._touched_at = change.at

    def look(self) -> None:
        """Count again, after a commit that changed runs of these jobs."""
        if self._touched_at is None:
            return
        self._until.update(dict.fromkeys(self._full, self._touched_at))
        held = Counter(
            limit for seen in self._world.observer.live.values() if seen.lease for limit, _ in self._limits_of(seen)
        )
        most = {limit: slots for seen in self._world.observer.live.values() for limit, slots in self._limits_of(seen)}
        self._full = {limit for limit, count in held.items() if count >= most[limit]}
        self._touched_at = None

    def was_there(self, seen: Seen, at: float) -> bool:
        """Return whether the limits of a run have had room for a while, and still have."""
        limits = [limit for limit, _ in self._limits_of(seen)]
        known = bool(limits) and not self._has_quotas and seen.schedule_id is None
        return known and all(
            limit not in self._full and at - self._until.get(limit, -_A_WHILE) > _A_WHILE for limit in limits
        )

    def _limits_of(self, seen: Seen) -> Iterator[tuple[tuple[str, object], int]]:
        of_job, of_scope = _SLOTS.get(seen.job, (None, None))
        if of_job is not None:
            yield (seen.job, None), of_job
        if of_scope is not None:
            yield (seen.job, seen.scope), of_scope
