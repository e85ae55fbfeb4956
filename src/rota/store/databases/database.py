"""The seam between the store's operations and a database: a transaction that fetches named statements."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from rota.core.limits.turns import BEFORE_ALL, Allowed, KeyHead, LimitChange, Room
from rota.core.runs.claim import (
    Candidate,
    Claim,
    ClaimRequest,
    Heads,
    LimitedRequest,
    OrderedRequest,
    RestrictedRequest,
    WaitingRun,
)
from rota.core.runs.outcome import Report
from rota.core.runs.run import NewRun
from rota.errors import Conflict
from rota.store.databases.epoch import Standing
from rota.store.databases.statements import Dialect
from rota.values.clock import Clock
from rota.values.durations import in_micros

if TYPE_CHECKING:
    from rota.store.databases.columns import Column, Columns


T = TypeVar("T")
Row = Sequence[Any]
Hint = Callable[[str | None], None]
"""Called with the queue that may have work, or None for any."""


class Tx(Protocol):
    """One transaction. On SQLite no call suspends, so that a whole body runs in one hop to the writer's thread."""

    dialect: Dialect
    hot: HotForms
    woken: set[str | None]
    """Queues that `wake` named since the transaction began; its database tells their listeners after the commit."""

    def wake(self, *queues: str | None) -> None:
        """Hint, once this transaction is committed, that these queues may have work; None: any queue.

        After a rollback nobody is told. A body that is run again begins with nobody to tell. Only whom a try woke whose
        connection broke is told with the repetition, since that try may have committed.
        """

    async def fetch(self, statement: str, rows: Sequence[Row] | None = None, /, **values: object) -> Sequence[Row]: ...

    async def fetch_sql(self, sql: str, /, **values: object) -> Sequence[Row]:
        """A statement composed at run time, in the notation of the `.sql` files."""

    async def script(self, sql: str) -> None: ...


class AlreadyThere(Conflict):
    """An id is taken: this enqueue was done before, and its answer got lost."""

    def __init__(self) -> None:
        super().__init__("a run of this id is there already")


class LiveLimits(Exception):
    """There are live limits, and this enqueue has not asked whether its runs are under them."""


class Completed(msgspec.Struct, frozen=True):
    """`ids` of runs whose lease was current; `followed`, those of them that others wait for.

    `freed`: limits of which they had slots, with their places, once each.
    """

    ids: set[str]
    followed: list[str]
    freed: list[Row] = []


EMPTY_FOR = in_micros(timedelta(seconds=0.2))
"""A limit that was not served for so long is looked at even if nothing waits under it, and is then shut."""
COMPARED = 100
"""Keys whose first runs are compared. While more of them have work of one priority, turns come before age."""


def keys_compared(slots: int) -> int:
    return min(slots, COMPARED) + COMPARED


class CountedCandidates(msgspec.Struct, frozen=True):
    """Room under limits, and the first runs that wait under those with some: under each as many as `asked`, or all."""

    room: dict[str, Room]
    asked: dict[str, int]
    runs: list[WaitingRun]


class HotForms(Protocol):
    """The operations that have a form of their own on each database, because they bound its speed."""

    async def enqueue(self, runs: Sequence[NewRun], *, asked: bool = True) -> int:
        """Insert runs, and return when they were created. Fails as a whole, with `AlreadyThere`, if one of the ids is
        taken; with `LiveLimits` if there are any, and it was not `asked` for those of these runs.
        """

    async def lock_due(self, providers: Sequence[Row], **limits: object) -> Sequence[Row]:
        """Schedules that are due, locked, as they are after that; the longest due first. Of each the number and mark of
        its cursor, whether it has lanes, how far it is planned; and its rowid, if it has one.
        """

    async def advance_ordinary(self, rows: Columns, rowids: Column) -> None:
        """Advance schedules that had an ordinary fire. `rowids` as `lock_due` told them."""

    async def insert_planned(self, rows: Sequence[Row]) -> set[str] | None:
        """Runs of schedules. None when all are new; otherwise the ids of those whose plan time had no run yet."""

    async def claim(self, request: ClaimRequest) -> list[Claim]: ...

    async def complete(self, reports: Sequence[Report]) -> Completed:
        """End runs that succeeded; drop leases and gates, and write the signals of those that somebody listens to."""

    async def heads(self, request: OrderedRequest) -> Heads:
        """The first plain and solo run of each queue, the limits to see to, and the requirements. Not locked."""

    async def solo(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        """Runs that must begin at once, locked."""

    async def open_keys(self, request: LimitedRequest, after: KeyHead = BEFORE_ALL) -> list[KeyHead]:
        """Limits to see to behind that one, least recently served first. Not locked."""

    async def counted_candidates(self, request: LimitedRequest, limits: Mapping[str, Allowed]) -> CountedCandidates:
        """Count what is free under these limits, which are locked, and lock the first runs, as many as `fair_asks`."""

    async def candidates(self, request: LimitedRequest, slots_by_key: Mapping[str, int]) -> list[WaitingRun]:
        """Lock, of each limit, up to so many runs, in their order: key and run."""

    async def take_limited(
        self, request: LimitedRequest, run_ids: Sequence[str], changes: Sequence[LimitChange] = ()
    ) -> list[Claim]:
        """Lease runs that are locked, enter their gates, and change limits."""

    async def take(self, request: RestrictedRequest, run_ids: Sequence[str]) -> list[Claim]:
        """Lease runs that are locked."""

    async def open_limits(self, places: Sequence[Row]) -> Sequence[Row]:
        """Open limits, which are locked; return of each whether it blocks others, and queues that wait under it."""

    async def needed(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        """Runs whose needs the worker meets, locked; replicas that are its own among them."""

    async def needed_head(self, request: RestrictedRequest) -> list[Candidate]:
        """The first of them, if there is any. Not locked: a look must not keep others from it."""

    async def open_replicas(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        """One replica, that nobody has yet, of each run of which it has none. Not locked."""


Work = Callable[[Tx], Coroutine[Any, Any, T]]


class Session(Protocol):
    """`connection` is the driver's own: asyncpg's, or apsw's."""

    connection: Any

    async def execute(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Execute a statement in the database's own notation: `$1` on PostgreSQL, `?` on SQLite."""

    async def within(self, work: Work[T]) -> T:
        """Run statements of ours in the same transaction. Whom they wake is told when the session is committed."""


class Database(Protocol):
    dialect: Dialect
    clock: Clock
    standing: Standing
    polls: bool
    """Hints of other processes do not get here: what they leave is found by looking."""

    @property
    def hears(self) -> bool:
        """Return whether hints of other processes arrive now, as far as is known."""

    async def transact(
        self, work: Work[T], *, repeatable: bool = True, deadline: timedelta | None = None, acts: bool = False
    ) -> T:
        """Run `work` in a transaction; again, from the start, when the database asks for it. Tell whom it woke.

        Unless told that it is not `repeatable`, also when the connection broke and nobody knows whether it committed.
        `deadline` replaces that of every call, for what may take longer. What rota does by itself (plan, claim, reap,
        send) `acts`: it raises `DatabaseCopied` in a copy that nobody has accepted.
        """

    async def alone(self, work: Work[T]) -> T:
        """Run `work`, which is a single statement, without a transaction around it where that saves a round trip."""

    async def glance(self, work: Work[T]) -> T:
        """Run `work`, which is a single question, without a transaction around it where that saves round trips."""

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a snapshot, without blocking writers."""

    async def heed(self, work: Work[T]) -> T:
        """Run `work` as `read` does, where hints come from: an answer proves that they arrive."""

    async def foresee(self, work: Work[Any]) -> None:
        """Read what will soon be written to, where whoever writes it then has it at hand; elsewhere, nothing is done.
        It comes after what this process is about to write.
        """

    def session(self) -> AbstractAsyncContextManager[Session]:
        """A transaction that stays open while somebody works in it; left by an exception, it is rolled back."""

    def version(self) -> object | None:
        """Another one after every commit, by anybody; None if that cannot be told without waiting."""

    def notify(self, queues: Iterable[str | None]) -> None:
        """Tell listeners, soon, that these queues may have work. A hint: it may be lost."""

    def listen(self, hint: Hint) -> Callable[[], None]:
        """Returns how to stop listening. Hints arrive on the caller's event loop."""

    async def renew(self) -> None:
        """Drop idle connections, because the next ones have something to learn: of a migration, where they are."""

    def twin(self) -> Database:
        """Return the same database for another thread's event loop."""

    async def close(self) -> None: ...


def drive(body: Any) -> Any:
    """Run a coroutine that never suspends."""
    try:
        body.send(None)
    except StopIteration as stop:
        return stop.value
    # Closed here, so that its `finally` blocks run in the thread that owns the connection, not wherever the garbage
    # collector finds it.
    body.close()
    raise RuntimeError("a transaction's body waited for something other than its statements")
