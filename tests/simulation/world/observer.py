"""What everybody can see but nobody may rely on: every run as it is after each commit, and what the commit changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from rota.store.databases.database import Row

if TYPE_CHECKING:
    from tests.simulation.script.entries import Script

Finding = tuple[str, str]
"""The promise that was broken, and how."""

_SEEN = """
select r.id, r.job, r.state, r.fence, r.attempt, r.finished_at, r.result, r.worker_id, r.cancelled_by, r.created_at,
    r.run_at, r.schedule_id, r.plan_time, r.scope_kind, r.scope_id, r.max_attempts, r.on_lost, r.retry_of, r.backfilled,
    r.payload, r.key, r.covers_from, l.fence, l.attempt, l.worker_id, l.claimed_at, l.expires_at, l.cancel_at,
    case when l.shielded > 0 then 1 else 0 end, w.fence, w.attempt, w.run_at, w.hold, w.limit_key, w.solo,
    w.rank, w.queue, w.need,
    o.fence, o.attempt, o.deadline, o.cancel_at, o.step, c.fence, c.attempt, c.cancel_at, r.parent_id
from rota_run r left join rota_lease l on l.run_id = r.id left join rota_ready w on w.run_id = r.id
left join rota_outside o on o.run_id = r.id left join rota_conduct c on c.run_id = r.id
order by r.id
"""


class Lease(msgspec.Struct, frozen=True):
    fence: int
    attempt: int
    worker: str
    claimed_at: int
    expires_at: int
    cancel_at: int | None
    shielded: int = 0


class Place(msgspec.Struct, frozen=True):
    """In the queue."""

    fence: int
    attempt: int
    run_at: int
    hold: int
    limit_key: str | None
    solo: int = 0
    rank: int = 0
    queue: str = "default"
    need: str | None = None


class Outside(msgspec.Struct, frozen=True):
    """In other hands."""

    fence: int
    attempt: int
    deadline: int
    cancel_at: int | None
    step: str | None = None


class Conduct(msgspec.Struct, frozen=True):
    """It is done by its replicas."""

    fence: int
    attempt: int
    cancel_at: int | None


class End(msgspec.Struct, frozen=True):
    state: str
    fence: int | None
    attempt: int | None
    finished_at: int
    result: str | None
    worker: str | None
    cancelled_by: str | None


Where = End | Lease | Place | Outside | Conduct


class Seen(msgspec.Struct, frozen=True):
    """A run."""

    id: str
    job: str
    created_at: int
    run_at: int
    schedule_id: str | None
    plan_time: int | None
    scope: tuple[str, str]
    max_attempts: int
    on_lost: str
    retry_of: str | None
    backfilled: bool
    payload: str
    key: str | None
    covers_from: int | None
    end: End | None
    lease: Lease | None
    place: Place | None
    external: Outside | None = None
    conduct: Conduct | None = None
    parent_id: str | None = None

    @property
    def fence(self) -> int:
        """The highest that it was ever given, as far as it knows."""
        if self.lease:
            return self.lease.fence
        if self.place:
            return self.place.fence
        if self.external:
            return self.external.fence
        if self.conduct:
            return self.conduct.fence
        return (self.end.fence or 0) if self.end else 0

    @property
    def where(self) -> Where | None:
        return self.end or self.lease or self.place or self.external or self.conduct

    def __str__(self) -> str:
        return f"{self.id[-6:]} {self.job} {_brief(self.where)}"


class Change(msgspec.Struct, frozen=True):
    """What a commit did to one run. `now` is the database's clock in microseconds, `at` the seconds that passed;
    `asked_at` is when its process sent the operation, which may have been on its way for seconds.
    """

    at: float
    now: int
    process: str
    worker: str
    op: str
    before: Seen | None
    after: Seen | None
    asked_at: float | None = None

    @property
    def run_id(self) -> str:
        seen = self.after or self.before
        assert seen is not None
        return seen.id

    def __str__(self) -> str:
        was, then = (_brief(seen.where if seen else None) for seen in (self.before, self.after))
        return f"{self.at:9.3f}s {self.process:9} {self.op:24} {self.run_id[-6:]} {was} -> {then}"


def _brief(where: Where | None) -> str:
    match where:
        case None:
            return "nothing"
        case End():
            return f"{where.state} (fence {where.fence}, attempt {where.attempt})"
        case Lease():
            asked = ", cancelling" if where.cancel_at is not None else ""
            asked += ", shielded" if where.shielded else ""
            return f"leased to {where.worker} (fence {where.fence}, attempt {where.attempt}{asked})"
        case Place():
            return f"waiting (hold {where.hold}, fence {where.fence}, attempts {where.attempt})"
        case Outside():
            asked = ", cancelling" if where.cancel_at is not None else ""
            return f"outside (fence {where.fence}, attempt {where.attempt}{asked})"
        case Conduct():
            asked = ", cancelling" if where.cancel_at is not None else ""
            return f"done by replicas (fence {where.fence}{asked})"


class Looks(Protocol):
    def look(self, sql: str) -> Sequence[Row]:
        """A question of the observer's."""


class Remains(Protocol):
    """What there is to look at when all is over: of a world, or of real processes and their database."""

    @property
    def backend(self) -> Looks: ...

    @property
    def observer(self) -> Observer: ...

    @property
    def script(self) -> Script: ...


class Observer:
    def __init__(self, backend: Looks) -> None:
        self._backend = backend
        self._rows: dict[str, tuple[Any, ...]] = {}
        self.runs: dict[str, Seen] = {}
        self.live: dict[str, Seen] = {}  # those of them that are not over

    def changes(self) -> Iterator[tuple[Seen | None, Seen | None]]:
        """(before, after) of every run that is not as it was when last looked at."""
        rows = {str(row[0]): tuple(row) for row in self._backend.look(_SEEN)}
        known, self._rows = self._rows, rows
        for id, row in rows.items():
            if known.get(id) != row:
                before, after = self.runs.get(id), _seen(row)
                self.runs[id] = after
                if after.end is None or after.lease or after.place:
                    self.live[id] = after
                else:
                    self.live.pop(id, None)
                yield before, after
        for id in sorted(known.keys() - rows.keys()):
            self.live.pop(id, None)
            yield self.runs.pop(id), None

    def look_anew(self) -> None:
        """Know nothing but what is there now: the database has lost what it was."""
        self._rows.clear()
        self.runs.clear()
        self.live.clear()
        list(self.changes())


def _seen(row: tuple[Any, ...]) -> Seen:
    (id, job, state, fence, attempt, finished_at, result, worker, cancelled_by, created_at, run_at, schedule_id,
        plan_time, scope_kind, scope_id, max_attempts, on_lost, retry_of, backfilled, payload, key,
        covers_from, *live) = row  # fmt: skip
    return Seen(
        str(id), job, created_at, run_at, None if schedule_id is None else str(schedule_id), plan_time,
        (scope_kind, scope_id), max_attempts, on_lost, None if retry_of is None else str(retry_of), bool(backfilled),
        payload, key, covers_from,
        None if state is None else End(state, fence, attempt, finished_at, result, worker, cancelled_by),
        None if live[0] is None else Lease(*live[:7]),
        None if live[7] is None else Place(*live[7:16]),
        None if live[16] is None else Outside(*live[16:21]),
        None if live[21] is None else Conduct(*live[21:24]),
        None if live[24] is None else str(live[24]),
    )  # fmt: skip
