"""Declared pipelines: no function; the payload must have the fields that the parts use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rota.errors import Invalid
from rota.registry.data_jobs import SchemaPayload, as_pipeline, may_be_part
from rota.registry.jobs import Handler, Registry, declare


def declare_pipeline(registry: Registry, name: str, items: object, options: Mapping[str, Any]) -> Handler:
    def done_in_parts(**_payload: Any) -> None:
        """Do nothing: tests may call handlers without a worker."""

    definition = declare(done_in_parts, type(None), {"description": "", **options, "name": name}).definition
    pipeline = as_pipeline(definition, items, options)
    for part in pipeline.pipeline:
        if part.job in registry.newest and not may_be_part(registry.newest[part.job].kind):
            raise Invalid(f"job {part.job!r} is a pipeline, and cannot be a part of {name!r}")
    for definition in registry.definitions():
        if any(part.job == name for part in definition.pipeline):
            raise Invalid(f"job {name!r} is a part of {definition.name!r}, and cannot be a pipeline")
    return Handler(pipeline, done_in_parts, SchemaPayload(pipeline.payload_schema))
