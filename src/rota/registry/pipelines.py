"""Declared pipelines: no function; the payload must have the fields that the parts use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rota.core.jobs.job import require_flat
from rota.registry.data_jobs import SchemaPayload, as_pipeline
from rota.registry.jobs import Handler, Registry, declare


def declare_pipeline(registry: Registry, name: str, items: object, options: Mapping[str, Any]) -> Handler:
    def done_in_parts(**_payload: Any) -> None:
        """Do nothing: tests may call handlers without a worker."""

    definition = declare(done_in_parts, type(None), {"description": "", **options, "name": name}).definition
    pipeline = as_pipeline(definition, items, options)
    require_flat(pipeline, registry.newest_definitions())
    return Handler(pipeline, done_in_parts, SchemaPayload(pipeline.payload_schema))
