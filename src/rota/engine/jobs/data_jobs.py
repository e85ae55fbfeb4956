"""Build handlers for data jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from rota.core.jobs.job import JobDefinition, JobKind, kind_of
from rota.engine.jobs.command import CommandJob
from rota.engine.jobs.command_limits import ProcessLimits
from rota.engine.jobs.http import HttpJob
from rota.errors import Invalid
from rota.registry.data_jobs import SchemaPayload
from rota.registry.jobs import Handler


def handler_of(definition: JobDefinition) -> Handler:
    return Handler(definition, _call_of(definition), SchemaPayload(definition.payload_schema))


def _call_of(definition: JobDefinition) -> Callable[..., Any]:
    kind = kind_of(definition.kind)
    match kind:
        case JobKind.HTTP:
            if definition.http is not None:
                return HttpJob(definition.http).send
        case JobKind.COMMAND:
            if definition.command is not None:
                limits = ProcessLimits(definition.cpu_limit, definition.memory_limit)
                return CommandJob(definition.command, definition.cancel.grace.total_seconds(), limits).execute
        case JobKind.EXTERNAL:
            return _done_outside
        case JobKind.PYTHON | JobKind.PIPELINE | None:
            pass
        case _:
            assert_never(kind)
    raise Invalid(f"job {definition.name!r} of kind {definition.kind} is not for workers")


def _done_outside(payload: str) -> None:
    """Do nothing: without a worker, as in tests, nobody executes an external job."""
