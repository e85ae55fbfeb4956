"""Things that are: jobs, runs, attempts, workers, as values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.core.commands import CommandLine
from rota.core.dependencies import Need
from rota.core.expectations import Expectations
from rota.core.http import HttpRequest
from rota.core.limits import Gate, Limit
from rota.core.needs import Needs, Staff
from rota.core.notes import Progress
from rota.core.pipelines import Part, Pipeline
from rota.core.replicas import Replicas
from rota.core.retry import RetryPolicy
from rota.core.scope import Scope
from rota.core.states import Outcome, RunState
from rota.core.steps import StepDefinition
from rota.core.unique import KeyHold, Unique
from rota.core.workers import Pace, WorkerState
from rota.instants import instant

Json = Any
"""JSON as it enters from or leaves to the outside."""

MIN_PRIORITY, MAX_PRIORITY = -1000, 1000


class CancelPolicy(msgspec.Struct, frozen=True):
    supported: bool = True
    grace: timedelta = timedelta(seconds=30)


class Retention(msgspec.Struct, frozen=True):
    """A finished run is kept while it is among the newest `keep`, or younger than `keep_for`."""

    keep: int = 100
    keep_for: timedelta = timedelta(days=30)


class JobDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What a job declares; stored, so that processes without its code can show and enqueue it."""

    name: str
    version: int = 1
    kind: str = "python"
    queue: str = "default"
    priority: int = 0
    retry: RetryPolicy = RetryPolicy()
    timeout: timedelta | None = None
    on_lost: str = "retry"
    isolation: str = "thread"
    cpu_limit: timedelta | None = None
    memory_limit: int | None = None
    local_retries: int = 0
    cancel: CancelPolicy = CancelPolicy()
    retention: Retention = Retention()
    unique: Unique | None = None
    limits: tuple[Limit, ...] = ()
    steps: tuple[StepDefinition, ...] = ()
    needs: Needs = Needs()
    replicas: Replicas | None = None
    expect: Expectations | None = None
    enabled: bool = True
    repeatable: bool = True
    schedulable: bool = True
    description: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Json] = {}
    payload_schema: dict[str, Json] = {}
    http: HttpRequest | None = None
    command: CommandLine | None = None
    pipeline: tuple[Part, ...] = ()


class Overrides(msgspec.Struct, frozen=True, omit_defaults=True):
    """Policies given for one run instead of its job's; those of a `pipeline` go for all its parts."""

    retry: RetryPolicy | None = None
    timeout: timedelta | None = None
    unique: Unique | bool | None = None
    needs: Needs | None = None
    pipeline: bool | None = None


class NewRun(msgspec.Struct, frozen=True, gc=False):
    """A run about to be enqueued: everything decided, JSON already text, in the order its table wants it.

    Due at `run_at`, or `delay` after the database's now; both in microseconds. A run made from another, `like` it in
    all but id and payload, says so: that saves a bulk enqueue from comparing them. `actor`: who asked for a retry.
    `after`: the runs that it follows. `staff`: who does it, if not anybody. `pipeline`: what it goes through.
    `droppable`: its job is data, and might be dropped before the run is there: it is held meanwhile.
    """

    id: str
    job: str
    job_version: int
    queue: str
    priority: int
    scope_kind: str
    scope_id: str
    key: str | None
    payload: str
    tags: str | None
    metadata: str | None
    overrides: str | None
    max_attempts: int
    on_lost: str
    retry_of: str | None = None
    origin_id: str | None = None
    run_at: int | None = None
    delay: int = 0
    holds: tuple[KeyHold, ...] = ()
    gates: tuple[Gate, ...] = ()
    like: NewRun | None = None
    actor: str | None = None
    after: tuple[Need, ...] = ()
    staff: Staff | None = None
    pipeline: Pipeline | None = None
    droppable: bool = False

    @property
    def limit_key(self) -> str | None:
        return self.gates[0].key if self.gates else None

    @property
    def is_special(self) -> bool:
        """It takes more than one statement."""
        known = self.holds or self.gates or self.retry_of or self.after or self.staff or self.pipeline
        return bool(known) or self.droppable

    @property
    def may_be_refused(self) -> bool:
        """By the database: for what it follows, for a key, or for a limit."""
        return bool(self.after or self.holds) or any(gate.decides for gate in self.gates)


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """`created` is false when a unique or idempotency key led to a run that was there already."""

    id: str
    created: bool
    created_micros: int | None = None
    run_micros: int | None = None

    @property
    def created_at(self) -> datetime | None:
        """Only known of a run that this enqueue created."""
        return None if self.created_micros is None else instant(self.created_micros)

    @property
    def run_at(self) -> datetime | None:
        return None if self.run_micros is None else instant(self.run_micros)


class MadeJob(msgspec.Struct, frozen=True):
    """`new`: the job was not there before. `run`: the one that came with it, this time or the first time."""

    job: JobDefinition
    new: bool
    run: Enqueued | None = None


class RunError(msgspec.Struct, frozen=True, omit_defaults=True):
    """`fingerprint`: the same for errors that differ in numbers, ids and quoted texts only; `core/fingerprints.py`."""

    type: str
    message: str
    code: str | None = None
    traceback: str | None = None
    fingerprint: str | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    job: str
    job_version: int
    queue: str
    priority: int
    scope: Scope
    key: str | None
    state: RunState
    reason: str | None
    fence: int
    attempt: int
    max_attempts: int
    payload: Json
    result: Json
    error: RunError | None
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    retry_of: str | None
    worker_id: str | None
    tags: tuple[str, ...]
    metadata: dict[str, Json]
    schedule: str | None = None
    plan_time: datetime | None = None
    covers_from: datetime | None = None
    missed_count: int = 0
    progress: Progress | None = None
    cancelled_by: str | None = None
    wait_since: datetime | None = None
    wait_until: datetime | None = None
    parent_id: str | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome` and `ended_at` are empty while it goes on."""

    no: int
    fence: int
    worker_id: str
    claimed_at: datetime
    lease_until: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: Outcome | None
    error: RunError | None
    cpu_time_ms: int | None
    memory_peak_mb: int | None
    counters: dict[str, int | float]

    @property
    def measured(self) -> str:
        """What it counted and used, for people."""
        used = [f"{name} {count:.15g}" for name, count in self.counters.items()]
        used += [] if self.cpu_time_ms is None else [f"cpu {self.cpu_time_ms}ms"]
        used += [] if self.memory_peak_mb is None else [f"memory peak {self.memory_peak_mb}MB"]
        return ", ".join(used)


class Measures(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an attempt measured of itself."""

    cpu_time_ms: int | None = None
    memory_peak_mb: int | None = None
    counters: dict[str, int | float] = {}


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself with each heartbeat; `weights` only if they differ, `asked` as it heard it."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    jobs: tuple[str, ...]
    slots: int
    weights: dict[str, int] = {}
    state: WorkerState = WorkerState.WORKING
    pace: Pace | None = None
    asked: str | None = None
    labels: tuple[str, ...] = ()
    app_version: str = ""


class Pause(msgspec.Struct, frozen=True):
    """What an operator holds, since when, and why."""

    name: str
    paused_at: datetime
    paused_by: str | None
    reason: str | None


QueueCount = tuple[str, int, int, int]
"""(queue, running, queued, scheduled)"""


def with_empty_queues(counts: Iterable[QueueCount], jobs: Iterable[JobDefinition]) -> list[QueueCount]:
    """For people, who look for the queues that their jobs name: an empty one is there, too."""
    filled = {count[0]: count for count in counts}
    names = {"default", *filled, *(job.queue for job in jobs)}
    return [filled.get(name, (name, 0, 0, 0)) for name in sorted(names)]


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that are all of this.

    `error` is a part of what their error says, `fingerprint` that of the error they ended with (their last attempt's,
    if `states` are live), `retried` whether another repeats them; `worker` an id, or a name that several may have;
    `parent` the run that they are replicas of; `payload` values in it: `{"url": "https://…", "options.depth": 2}`.
    """

    states: tuple[RunState, ...] = ()
    job: str | None = None
    queue: str | None = None
    scope: Scope | None = None
    key: str | None = None
    tag: str | None = None
    schedule: str | None = None
    worker: str | None = None
    parent: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    error: str | None = None
    fingerprint: str | None = None
    payload: dict[str, Json] = {}
    retried: bool | None = None
