"""Job definitions as they are declared and stored."""

from __future__ import annotations

from datetime import timedelta

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
from rota.values.json import Json

MIN_PRIORITY, MAX_PRIORITY = -1000, 1000


class CancelPolicy(msgspec.Struct, frozen=True):
    supported: bool = True
    grace: timedelta = timedelta(seconds=30)


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
    cpu_limit: timedelta | None = None
    memory_limit: int | None = None
    local_retries: int = 0
    cancel: CancelPolicy = CancelPolicy()
    retention: Retention = Retention()
    unique: Unique | None = None
    limits: tuple[Limit, ...] = ()
    steps: tuple[StepDefinition, ...] = ()
    requirements: Requirements = msgspec.field(default=Requirements(), name="needs")  # the stored name
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
