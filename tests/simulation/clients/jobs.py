"""What clients do to jobs as a whole, while others work on their runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from rota.client.client import Client
from tests.simulation.application.data_jobs import DATA_JOBS
from tests.simulation.clients.calls import ask
from tests.simulation.clients.triggers import trigger_of

if TYPE_CHECKING:
    from tests.simulation.script.entries import ChangeJob
    from tests.simulation.world.processes import ClientProcess

_ONCE = ("create", "retry", "attach")
"""Verbs that another try would do anew, if the answer to the first got lost."""


async def change(process: ClientProcess, entry: ChangeJob, place: int) -> None:
    client, job, options = process.client, entry.job, dict(entry.options)
    payload = {"n": place * 100, "acts": options.pop("acts", ["ok:0.1"])}
    acts: dict[str, Callable[[], Awaitable[Any]]] = {
        "create": lambda: _create(client, job, payload, options, process.name),
        "update": lambda: client.data_jobs.update(job, **options, actor=process.name),
        "replace": lambda: client.data_jobs.replace(job, **{**DATA_JOBS[job], **options}, actor=process.name),
        "delete": lambda: client.data_jobs.delete(job, **options, actor=process.name),
        "pause": lambda: client.pause_job(job, reason="drawn", actor=process.name),
        "resume": lambda: client.resume_job(job, **options, actor=process.name),
        "cancel": lambda: client.cancel_job(job, reason="drawn", actor=process.name),
        "retry": lambda: client.retry_job(job, actor=process.name),
        "attach": lambda: client.schedules.create(
            f"{job}-{place}", job, trigger_of(options["trigger"]), payload=payload
        ),
    }

    async def act() -> str:
        return _brief(await acts[entry.verb]())

    asked = {**options, "now": process.world.clock.micros()}
    await ask(process, f"{entry.verb}_job", job, act, insist=entry.verb not in _ONCE, options=asked)


async def _create(client: Client, job: str, payload: dict[str, Any], options: dict[str, Any], actor: str) -> object:
    """`schedule`: how often its own one fires. `run`: with a first run."""
    more: dict[str, Any] = {}
    if "schedule" in options:
        more["schedule"] = {"every": options["schedule"], "payload": payload}
    if options.get("run"):
        more["run"] = payload
    return await client.data_jobs.create(job, **DATA_JOBS[job], **more, actor=actor)


def _brief(answer: Any) -> str:
    """What is the same on both databases, and short."""
    status = getattr(answer, "status", answer)
    return str(getattr(status, "state", None) or getattr(answer, "name", "done"))
