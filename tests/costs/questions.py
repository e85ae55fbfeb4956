"""Every question that REST answers, with arguments: the dashboard asks most of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rota.client.client import Client
from rota.client.parts import all_verbs
from rota.verbs.verb import Declared


class Subjects(msgspec.Struct, frozen=True):
    """What questions are about: a run that has ended, a job, a schedule, a worker."""

    run: str
    job: str
    schedule: str
    worker: str


Arguments = Callable[[Subjects], dict[str, Any]]

LEFT_OUT = {
    "/quotas/{kind}/{id}": "the same as that of a kind",
    "/expectations/{kind}/{name}": "reads one row by its key",
    "/notifications/{name}": "reads one row by its key",
    "/quotas/{kind}": "reads one row by its key",
    "/database/checks": "verifies up to a hundred ledgers, each as `GET /schedules/{name}/verify` does",
    "/scheduler/metrics": "reads all jobs, once in 30 seconds for all servers: `scheduler metrics, kept`",
}
_ABOUT_OTHERS: dict[str, Arguments] = {
    "/runs:count": lambda _: {"most": 1_000},
    "/schedules:recent": lambda about: {"names": [about.schedule]},
}


def questions() -> dict[str, Declared]:
    """Return the verbs that ask, by route."""
    return {f"GET {verb.verb.path}": verb for verb in all_verbs() if verb.verb.method == "GET"}


def arguments_of(path: str, about: Subjects) -> dict[str, Any]:
    if path in _ABOUT_OTHERS:
        return _ABOUT_OTHERS[path](about)
    for prefix, arguments in (
        ("/runs/{id}", {"run_id": about.run}),
        ("/executions/{id}", {"execution_id": about.run}),
        ("/jobs/{name}", {"name": about.job}),
        ("/schedules/{name}", {"name": about.schedule}),
        ("/workers/{id}", {"id_or_name": about.worker}),
    ):
        if path.startswith(prefix):
            return arguments
    return {}


async def ask(client: Client, verb: Declared, about: Subjects) -> object:
    part = getattr(client, verb.part) if verb.part else client
    answer: object = await getattr(part, verb.name)(**arguments_of(verb.verb.path, about))
    return answer
