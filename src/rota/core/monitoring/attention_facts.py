"""Facts from which attention is derived: read from live rows, narrow tables and statistics, never from all runs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.ledger.database_state import DatabaseStanding
from rota.core.monitoring.attention import Snooze
from rota.core.monitoring.doctor import OperatorPause, StuckRun, Symptoms


class Backlog(msgspec.Struct, frozen=True):
    """Claimable runs of a job in a queue; instants in microseconds."""

    queue: str
    job: str
    runs: int
    oldest: int
    late: int


class OpenBreach(msgspec.Struct, frozen=True):
    kind: str
    subject: str
    what: str
    since: int
    message: str


class FailingLane(msgspec.Struct, frozen=True):
    """Runs of a schedule for one scope, the last of which failed; `failures` in a row, the first of them at `since`,
    the last with this error."""

    schedule: str
    scope_kind: str
    scope_id: str
    failures: int
    since: int
    error: str | None = None


class MissedTimes(msgspec.Struct, frozen=True):
    """Plan times of a schedule that got no run."""

    schedule: str
    reason: str
    first: int
    last: int
    count: int


class SkippedTimes(msgspec.Struct, frozen=True):
    """Runs of a schedule that were skipped within a day, of `due` plan times; None: nobody knows how many."""

    schedule: str
    reason: str
    first: int
    last: int
    count: int
    due: int | None = None


class GoneWorker(msgspec.Struct, frozen=True):
    """Worker that went silent without a shutdown; the runs that it holds, and those that were taken away from it."""

    id: str
    seen_at: int
    held: Sequence[str] = ()
    lost: Sequence[str] = ()


class LongRun(msgspec.Struct, frozen=True):
    """Run under way for long, and how long 95 % of `counted` runs of its job take (µs)."""

    run_id: str
    job: str
    scope_kind: str
    scope_id: str
    worker_id: str
    began: int
    p95: float
    counted: int


class FailingJob(msgspec.Struct, frozen=True):
    """Failures among the last runs of a job, and among those of its week."""

    job: str
    failed: int
    ended: int
    week_failed: int
    week_ended: int
    since: int


class QueueDepth(msgspec.Struct, frozen=True):
    """Number of queued runs at an instant (µs)."""

    queue: str
    at: int
    runs: int


class StarvedLimit(msgspec.Struct, frozen=True):
    """Runs that wait under a limit, the oldest since `oldest`."""

    key: str
    runs: int
    oldest: int


class PausedSchedule(msgspec.Struct, frozen=True):
    name: str
    since: int
    by: str | None
    reason: str | None


class ProgramVersion(msgspec.Struct, frozen=True):
    """Version of rota, and of the schema that it knows, of so many live processes."""

    version: str
    schema: int | None
    processes: int


class Delivery(msgspec.Struct, frozen=True):
    """One of the newest deliveries of a notification. `error` of its last attempt; None: it has not failed."""

    notification: str
    run_id: str
    at: int
    succeeded: bool
    error: str | None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts from the database and this process. `lingering`: runs whose grace is over, and that have not stopped.

    `offset`: of this host's clock from the database's, in microseconds, as far as it is certain. `standing`: of the
    database, if it is a copy, or was another one before.
    """

    symptoms: Symptoms
    backlog: Sequence[Backlog] = ()
    held: Sequence[OperatorPause] = ()
    lingering: Sequence[StuckRun] = ()
    breaches: Sequence[OpenBreach] = ()
    failing: Sequence[FailingLane] = ()
    missed: Sequence[MissedTimes] = ()
    skipped: Sequence[SkippedTimes] = ()
    gone: Sequence[GoneWorker] = ()
    long_runs: Sequence[LongRun] = ()
    failing_jobs: Sequence[FailingJob] = ()
    depths: Sequence[QueueDepth] = ()
    limits: Sequence[StarvedLimit] = ()
    paused_schedules: Sequence[PausedSchedule] = ()
    versions: Sequence[ProgramVersion] = ()
    deliveries: Sequence[Delivery] = ()
    snoozes: Sequence[Snooze] = ()
    standing: DatabaseStanding | None = None
    polls: bool = False
    offset: int = 0
