"""Jobs of system tests, with a hook: `noted` returns the id of each `nap` that succeeded."""

from __future__ import annotations

from typing import Any

from rota import Context
from tests.support.jobs.system_jobs import app, entered

__all__ = ["app"]


@app.on("run.succeeded", jobs=["nap"], max_attempts=50)
async def noted(ctx: Context, event: dict[str, Any]) -> str:
    with entered(ctx):
        return str(event["run"]["id"])
