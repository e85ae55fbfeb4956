"""Runs and attempts as values: new, enqueued, stored, and the filter that selects them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from rota.core.jobs.pipelines import Pipeline
from rota.core.jobs.retry import RetryPolicy
from rota.core.jobs.status import JobView
from rota.core.jobs.unique import KeyHold, Unique
from rota.core.limits.limits import Gate
from rota.core.limits.lines import line_key
from rota.core.progress.notes import Progress, progress_of
from rota.core.progress.steps import Step
from rota.core.runs.dependencies import Dependency
from rota.core.runs.payload import Scalar, checked_values
from rota.core.states import Outcome, RunState
from rota.core.workers.requirements import Eligibility, Requirements
from rota.values.instants import instant
from rota.values.json import Json
from rota.values.scope import Scope


class Overrides(msgspec.Struct, frozen=True, omit_defaults=True):
    """Policies given for one run instead of its job's; those of a `pipeline` apply to all its parts."""

    retry: RetryPolicy | None = None
    timeout: timedelta | None = None
    unique: Unique | bool | None = None
    requirements: Requirements | None = msgspec.field(default=None, name="needs")  # the stored name
    pipeline: bool | None = None


class NewRun(msgspec.Struct, frozen=True, gc=False):
    """Run about to be enqueued: everything decided, JSON already encoded, fields in the order of its table.

    Due at `run_at`, or `delay` after the database's now, both in µs. `like`: another run that this one equals in all
    but id, payload and keys, which saves a bulk enqueue the comparison. `actor`: who asked for a retry. `after`: its
    predecessors. `eligibility`: which workers may have it, None for any. `pipeline`: its parts. `droppable`: its job is
    a data job that could be deleted before the run is inserted, so the job's row is locked meanwhile. `edited`: fields
    of the payload in which a retry differs from its predecessor.
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
    after: tuple[Dependency, ...] = ()
    eligibility: Eligibility | None = None
    pipeline: Pipeline | None = None
    droppable: bool = False
    edited: tuple[str, ...] = ()

    @property
    def limit_key(self) -> str | None:
        gates = self.gates
        return line_key(gates) if gates[1:] else gates[0].key if gates else None  # no call for one: this is hot

    @property
    def is_special(self) -> bool:
        """Return whether inserting it takes more than one statement."""
        extras = self.holds or self.gates or self.retry_of or self.after or self.eligibility or self.pipeline
        return bool(extras) or self.droppable

    @property
    def may_be_refused(self) -> bool:
        """Return whether the database may refuse it: because of a predecessor, a key or a limit."""
        return bool(self.after or self.holds or (self.gates and any(gate.decides for gate in self.gates)))


def models_of(runs: Iterable[NewRun]) -> Sequence[NewRun]:
    """Return the runs that the others are `like`: whatever else holds for these holds for all of them."""
    return list({id(model): model for model in [run.like or run for run in runs]}.values())


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """Answer of an enqueue; `created` is false when a unique or idempotency key led to an existing run."""

    id: str
    created: bool
    created_micros: int | None = None
    run_micros: int | None = None

    @property
    def created_at(self) -> datetime | None:
        """Time of creation; None unless this enqueue created the run."""
        return None if self.created_micros is None else instant(self.created_micros)

    @property
    def run_at(self) -> datetime | None:
        return None if self.run_micros is None else instant(self.run_micros)


class RunError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Error of a run or an attempt. `core/runs/error_fingerprint.py` defines which errors share a `fingerprint`."""

    type: str
    """Type of the error."""
    message: str
    code: str | None = None
    """Code of the error, if it has one."""
    traceback: str | None = None
    fingerprint: str | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of a job, with all its attempts."""

    id: str
    job: str
    job_version: int
    queue: str
    priority: int
    scope: Scope
    key: str | None
    state: RunState
    reason: str | None
    """Why it was cancelled, or ended without a result of its handler."""
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


class CreatedJob(JobView, frozen=True, kw_only=True):
    """Job that was created or replaced. `created`: it did not exist before. `schedule` and `run` are those created with
    it, now or before; the schedule as documents show it."""

    created: bool
    """Whether the job is new."""
    schedule: dict[str, Json] | None = None
    """The schedule that was created with the job."""
    run: Run | None = None
    """The run that was created with the job."""


class EnqueuedRun(Run, frozen=True, kw_only=True):
    """Run that a command enqueued; `created` is false when an idempotency key led to an existing run."""

    created: bool
    """Whether the run is new."""


def enqueued_as(run: Run, *, created: bool) -> EnqueuedRun:
    """Return the run as the answer of a command that enqueued it, or found it."""
    return EnqueuedRun(**msgspec.structs.asdict(run), created=created)


def with_steps(run: Run, steps: Sequence[Step]) -> Run:
    """Return the run with its steps in `progress`. One that has no steps and reported nothing has no progress."""
    if run.progress is None and not steps:
        return run
    return msgspec.structs.replace(run, progress=progress_of(run.progress, steps, run.state))


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """Attempt of a run; `outcome` and `ended_at` are None while it is running."""

    no: int
    """Number of the attempt."""
    fence: int
    worker_id: str
    claimed_at: datetime
    lease_until: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: Outcome | None
    error: RunError | None
    """Error with which it ended."""
    cpu_time_ms: int | None
    memory_peak_mb: int | None
    counters: dict[str, int | float]

    @property
    def measured(self) -> str:
        """Counters, CPU time and memory of the attempt in one line, for people."""
        used = [f"{name} {count:.15g}" for name, count in self.counters.items()]
        used += [] if self.cpu_time_ms is None else [f"cpu {self.cpu_time_ms}ms"]
        used += [] if self.memory_peak_mb is None else [f"memory peak {self.memory_peak_mb}MB"]
        return ", ".join(used)


class Measures(msgspec.Struct, frozen=True, omit_defaults=True):
    """Measurements that an attempt reports about itself."""

    cpu_time_ms: int | None = None
    memory_peak_mb: int | None = None
    counters: dict[str, int | float] = {}


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of runs; all given conditions must hold.

    Its fields are the query parameters of lists of runs and the `filter` of bulk commands; `payload` holds values in
    the payload: `{"url": "https://…", "options.depth": 2}`.
    """

    states: Annotated[tuple[RunState, ...], Meta(description="State; may be repeated: any of them")] = msgspec.field(
        default=(), name="state"
    )
    job: Annotated[str | None, Meta(description="Name of the job")] = None
    queue: Annotated[str | None, Meta(description="Name of the queue")] = None
    scope: Annotated[Scope | None, Meta(description="Scope: `kind/id`")] = None
    key: Annotated[str | None, Meta(description="Key of the run")] = None
    tag: Annotated[str | None, Meta(description="One of its tags")] = None
    schedule: Annotated[str | None, Meta(description="Name of the schedule that created it")] = None
    worker: Annotated[str | None, Meta(description="An id, or a name, which several workers may share")] = None
    parent: Annotated[str | None, Meta(description="The run whose replicas to find")] = None
    created_after: Annotated[datetime | None, Meta(description="Created at this time or later")] = None
    created_before: Annotated[datetime | None, Meta(description="Created before this time")] = None
    error: Annotated[str | None, Meta(description="A part of `Type: message`")] = None
    fingerprint: Annotated[
        str | None, Meta(description="Fingerprint of the error it ended with; of its last attempt's, if it is live")
    ] = None
    payload: Annotated[
        Mapping[str, Scalar], Meta(description="Values in the payload, by dotted path: `payload.url=https://…`")
    ] = {}
    retried: Annotated[bool | None, Meta(description="Whether another run is a retry of it")] = None

    def __post_init__(self) -> None:
        if self.payload:
            checked_values(self.payload)
