"""Data jobs, which clients create, change and delete while workers do their runs; their handlers do what payloads say.

One of each kind: an HTTP request, a command, an external job with steps, and a pipeline of these three; and another
request, which is no part of anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.engine.handlers.context import Context
from rota.engine.worker import known_jobs
from rota.registry.data_jobs import SchemaPayload
from rota.registry.jobs import Handler
from tests.simulation.application import pipelines
from tests.simulation.world.loop import CURRENT

if TYPE_CHECKING:
    from tests.simulation.world.processes import Process

PARTS = ("ping", "task", "tool")
"""The parts of the pipeline, in their order."""
_COMMON: dict[str, Any] = {"max_attempts": 3, "backoff": "1s", "cancel_grace": "3s"}


def _parts() -> list[dict[str, Any]]:
    payload = {"n": "{payload.n}", "acts": "{payload.acts}"}
    return [
        {"step": f"step-{place}", "job": job, "payload": {**payload, "place": place}} for place, job in enumerate(PARTS)
    ]


DATA_JOBS: dict[str, dict[str, Any]] = {
    "ping": {"kind": "http", "url": "https://example.com/0", **_COMMON},
    "probe": {"kind": "http", "url": "https://example.com/probe", **_COMMON},
    "tool": {"kind": "command", "argv": ["work"], "max_concurrency": 1, **_COMMON},
    "task": {"kind": "external", "steps": ["fetch", {"id": "seal", "timeout": "6s"}], **_COMMON},
    "flow": {"kind": "pipeline", "pipeline": _parts(), **_COMMON},
}
DATA_PIPELINES = ("flow",)
DATA_EXTERNAL = ("task",)


class Edition(msgspec.Struct, frozen=True):
    """A handler began a run, with the definition of this version."""

    run_id: str
    fence: int
    job: str
    version: int


class _Payload(SchemaPayload):
    """As the one of data jobs, for a handler that wants its context, too."""

    __slots__ = ()

    def __init__(self, schema: dict[str, Any]) -> None:
        super().__init__(schema)
        self.wants_context = "ctx"


def handler_of(definition: JobDefinition) -> Handler:
    """Build a handler that does what its payload says, in place of the request or the command."""
    from tests.simulation.application.jobs import act_out

    async def handle(ctx: Context, payload: str) -> dict[str, int]:
        process: Process = CURRENT.get()  # type: ignore[assignment]
        process.world.diary.editions.append(Edition(ctx.run_id, ctx.fence, definition.name, definition.version))
        asked = msgspec.json.decode(payload)
        result = await act_out(ctx, asked["n"], acts_of(asked))
        if "place" in asked:
            pipelines.gives(process, ctx, result)
        return result

    return Handler(definition, handle, _Payload(definition.payload_schema))


def acts_of(payload: dict[str, Any]) -> list[str]:
    """Return what a run is to do; `ok:1/raise:1/ok:2` names it for each part of a pipeline."""
    acts: list[str] = payload["acts"]
    return [act.split("/")[payload["place"]] for act in acts] if "place" in payload else acts


@contextmanager
def simulated_handlers() -> Iterator[None]:
    """Let workers of this world send no requests, and start no programs."""
    with (
        patch.object(known_jobs, "handler_of", handler_of),
        patch.object(known_jobs, "can_send", lambda: True),
    ):
        yield
