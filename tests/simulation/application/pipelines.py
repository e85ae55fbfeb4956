"""Pipelines: one run in three parts, each done by whoever has it; and what its handlers keep of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rota.engine.handlers.context import Context
    from tests.simulation.world.processes import Process

PARTS: dict[str, dict[str, Any]] = {"hew": {}, "cut": {"queue": "fast"}, "polish": {"timeout": "6s"}}
"""Jobs that are the parts of a pipeline, under their own names."""

PIPELINES: dict[str, dict[str, Any]] = {"line": {"max_attempts": 4, "backoff": "1s", "cancel_grace": "3s"}}
STEPS = tuple(PARTS)
_RECORDED = "select id, state, result from rota_step where run_id = '{}' order by id"
_FENCE = "select fence from rota_lease where run_id = '{}'"


class Begun(msgspec.Struct, frozen=True):
    """A part, as its handler was told; and what was recorded of its run at that moment. `current`: its fence was."""

    at: float
    run_id: str
    fence: int
    job: str
    place: int
    got: Any
    recorded: dict[str, tuple[str, Any]]
    current: bool


def declared() -> list[dict[str, Any]]:
    """Each is given what the one before it gave."""
    parts = []
    for place, step in enumerate(STEPS):
        payload: dict[str, Any] = {"n": "{payload.n}", "acts": "{payload.acts}", "place": place}
        if place:
            payload["got"] = f"{{steps.{STEPS[place - 1]}}}"
        parts.append({"step": step, "job": step, "payload": payload})
    return parts


def begins(process: Process, ctx: Context, place: int, got: Any) -> None:
    world = process.world
    if process.dead or world.over:
        return
    rows = world.backend.look(_RECORDED.format(ctx.run_id))
    recorded = {id: (state, None if result is None else msgspec.json.decode(result)) for id, state, result in rows}
    current = [row[0] for row in world.backend.look(_FENCE.format(ctx.run_id))] == [ctx.fence]
    world.diary.parts.append(Begun(world.loop.time(), ctx.run_id, ctx.fence, ctx.job, place, got, recorded, current))


def gives(process: Process, ctx: Context, result: dict[str, int]) -> None:
    process.world.diary.given[ctx.run_id, ctx.fence] = result
