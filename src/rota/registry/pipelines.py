"""Declared pipelines: no function; the payload must have the fields that the parts use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.core.jobs.pipelines import PIPELINE, PLACE, parts_of
from rota.core.jobs.placeholders import payload_names
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
        if part.job in registry and registry.newest(part.job).definition.kind == PIPELINE:
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
        kind=PIPELINE,
        pipeline=parts,
        steps=tuple(StepDefinition(part.step, part.job) for part in parts),
        payload_schema=payload.schema(),
    )
    if pipeline.unique is not None and pipeline.unique.on_conflict == "replace":
        raise Invalid("a pipeline cannot be replaced: parts of it may be done", hint='on_conflict="existing"')
    return Handler(pipeline, done_in_parts, payload)
