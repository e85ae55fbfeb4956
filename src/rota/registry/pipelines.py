"""Declared pipelines: no function; the payload must have the fields that the parts use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import msgspec

from rota.core.jobs.job import JobKind
from rota.core.jobs.pipelines import PLACE, parts_of
from rota.core.jobs.placeholders import payload_names
from rota.core.jobs.unique import on_conflict_of, replaces
from rota.core.progress.steps import StepDefinition
from rota.errors import Invalid
from rota.registry.data_jobs import SchemaPayload
from rota.registry.jobs import Handler, Registry, declare

_OF_ITS_PARTS = ("isolation", "cpu_limit", "memory_limit", "local_retries", "steps", "replicas")


def declare_pipeline(registry: Registry, name: str, items: object, options: Mapping[str, Any]) -> Handler:
    for option in ("name", *_OF_ITS_PARTS):
        if option in options:
            raise Invalid(f"pipeline {name!r:.80} cannot have {option}", hint="declare it on the jobs of its parts")
    parts = parts_of(name, items)
    for part in parts:
        if part.job in registry.newest and not _may_be_part(registry.newest[part.job].kind):
            raise Invalid(f"job {part.job!r} is a pipeline, and cannot be a part of {name!r}")
    for definition in registry.definitions():
        if any(part.job == name for part in definition.pipeline):
            raise Invalid(f"job {name!r} is a part of {definition.name!r}, and cannot be a pipeline")

    def done_in_parts(**_payload: Any) -> None:
        """Do nothing: tests may call handlers without a worker."""

    names = payload_names(*(part.payload for part in parts), place=PLACE)
    schema: dict[str, Any] = {"type": "object", "properties": {field: {} for field in names}}
    payload = SchemaPayload(schema | {"required": names} if names else schema)
    definition = declare(done_in_parts, type(None), {"description": "", **options, "name": name}).definition
    pipeline = msgspec.structs.replace(
        definition,
        kind=JobKind.PIPELINE.value,
        pipeline=parts,
        steps=tuple(StepDefinition(part.step, part.job) for part in parts),
        payload_schema=payload.schema(),
    )
    if pipeline.unique is not None and replaces(on_conflict_of(pipeline.unique.on_conflict)):
        raise Invalid("a pipeline cannot be replaced: parts of it may be done", hint='on_conflict="existing"')
    return Handler(pipeline, done_in_parts, payload)


def _may_be_part(kind: JobKind | None) -> bool:
    match kind:
        case JobKind.PYTHON | JobKind.HTTP | JobKind.COMMAND | JobKind.EXTERNAL:
            return True
        case JobKind.PIPELINE | None:
            return False
        case _:
            assert_never(kind)
