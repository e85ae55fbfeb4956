"""Job definitions as they are declared and stored."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from typing import Literal, assert_never

import msgspec

from rota.core.alerts.expectations import Expectations
from rota.core.jobs.command import CommandLine
from rota.core.jobs.http import HttpRequest
from rota.core.jobs.pipelines import Part
from rota.core.jobs.retry import RetryPolicy
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.core.progress.steps import StepDefinition
from rota.core.workers.replicas import Replicas
from rota.core.workers.requirements import Requirements
from rota.errors import Invalid
from rota.values.json import Json

MIN_PRIORITY, MAX_PRIORITY = -1000, 1000


class JobKind(StrEnum):
    """Executor of a job's runs: a function, rota itself, an external worker, or the jobs that are its parts."""

    PYTHON = "python"
    HTTP = "http"
    COMMAND = "command"
    EXTERNAL = "external"
    PIPELINE = "pipeline"


DataKind = Literal[JobKind.HTTP, JobKind.COMMAND, JobKind.EXTERNAL, JobKind.PIPELINE]
"""Kind of a data job, which is declared by its options alone."""


class Isolation(StrEnum):
    """Place of a handler that is no coroutine: a thread of the worker, or a process of its own."""

    THREAD = "thread"
    PROCESS = "process"


ISOLATIONS = tuple(mode.value for mode in Isolation)
_KINDS = {kind.value: kind for kind in JobKind}
_ISOLATIONS = {mode.value: mode for mode in Isolation}


def kind_of(word: str) -> JobKind | None:
    """Return the kind that a stored definition names; None for a word of a newer program, whose runs are not for us."""
    return _KINDS.get(word)


def isolation_of(word: str) -> Isolation:
    """Return the isolation that a stored definition names.

    A word of a newer program counts as `thread`, the default: only that program's own code can run such a job.
    """
    return _ISOLATIONS.get(word, Isolation.THREAD)


def data_kind(kind: JobKind) -> DataKind | None:
    """Return the kind as that of a data job; None if it is declared in code only."""
    match kind:
        case JobKind.HTTP | JobKind.COMMAND | JobKind.EXTERNAL | JobKind.PIPELINE:
            return kind
        case JobKind.PYTHON:
            return None
        case _:
            assert_never(kind)


def is_external(word: str) -> bool:
    """Return whether external workers execute the runs of a job of that kind."""
    kind = kind_of(word)
    match kind:
        case JobKind.EXTERNAL:
            return True
        case JobKind.PYTHON | JobKind.HTTP | JobKind.COMMAND | JobKind.PIPELINE | None:
            return False
        case _:
            assert_never(kind)


class CancelPolicy(msgspec.Struct, frozen=True):
    """Effect of a cancel on a run that has begun."""

    supported: bool = True
    """Whether a running run can be cancelled."""
    grace: timedelta = timedelta(seconds=30)
    """Time that a cancelled run has to stop."""


class Retention(msgspec.Struct, frozen=True):
    """A finished run is kept while it is among the newest `keep`, or younger than `keep_for`."""

    keep: int = 100
    keep_for: timedelta = timedelta(days=30)


class JobDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """Definition of a job; stored, so that processes without its code can show and enqueue it."""

    name: str
    version: int = 1
    kind: str = "python"
    queue: str = "default"
    priority: int = 0
    retry: RetryPolicy = RetryPolicy()
    timeout: timedelta | None = None
    on_lost: str = "retry"
    isolation: str = "thread"
    """Where a handler that is no coroutine runs: `thread` or `process`."""
    cpu_limit: timedelta | None = None
    """CPU time that an attempt may take, in a process of its own."""
    memory_limit: int | None = None
    """Bytes that an attempt may use, in a process of its own."""
    local_retries: int = 0
    """How often a handler is repeated within one attempt."""
    cancel: CancelPolicy = CancelPolicy()
    """How a running run is cancelled."""
    retention: Retention = Retention()
    """Which finished runs are kept."""
    unique: Unique | None = None
    limits: tuple[Limit, ...] = ()
    """Limits of concurrency and rate."""
    steps: tuple[StepDefinition, ...] = ()
    requirements: Requirements = msgspec.field(default=Requirements(), name="needs")  # the stored name
    """What a worker must have to execute its runs."""
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
    """Request of an HTTP job, with its secrets masked."""
    command: CommandLine | None = None
    """Program of a command job, with its secrets masked."""
    pipeline: tuple[Part, ...] = ()
    """Jobs that are its parts, if it is a pipeline."""


def may_be_part(kind: JobKind | None) -> bool:
    """Return whether a job of that kind may be a part of a pipeline."""
    match kind:
        case JobKind.PYTHON | JobKind.HTTP | JobKind.COMMAND | JobKind.EXTERNAL:
            return True
        case JobKind.PIPELINE | None:
            return False
        case _:
            assert_never(kind)


def require_flat(pipeline: JobDefinition, known: Iterable[JobDefinition]) -> None:
    """Raise `Invalid` if a part of the pipeline is a pipeline among the `known` jobs, or it is a part of one itself.

    A part that does not exist yet may come.
    """
    parts = {part.job for part in pipeline.pipeline}
    for other in known:
        if other.name in parts and not may_be_part(kind_of(other.kind)):
            raise Invalid(f"job {other.name!r} is a pipeline, and cannot be a part of {pipeline.name!r}")
        if parts and any(part.job == pipeline.name for part in other.pipeline):
            raise Invalid(f"job {pipeline.name!r} is a part of {other.name!r}, and cannot be a pipeline")
