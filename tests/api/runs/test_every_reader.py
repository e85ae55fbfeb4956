"""Every query about a run, through every interface, works for every kind of run in every state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest

from rota.app import Rota
from rota.core.runs.run import Run
from rota.core.states import RunState
from rota.remote import RemoteClient
from rota.server import asgi
from rota.testing import Harness
from tests.support.processes.command_line import rota
from tests.support.runs.run_states import Life
from tests.support.servers.http_server import serving

QUESTIONS = (
    *("get", "attempts", "steps", "logs", "parents", "children", "replicas", "explain", "events"),
)  # fmt: skip
LISTS = (
    "/runs?limit=200",
    "/export/runs",
    "/export/attempts",
    "/export/events",
    "/timeline",
    "/overview",
    "/error-groups",
)


@pytest.fixture
async def lived(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=database_url) as harness:
        await Life(harness).live()
        yield harness


async def all_runs(harness: Harness) -> list[Run]:
    found: list[Run] = []
    while page := await harness.client.list(limit=200, before=found[-1].id if found else None):
        found += page
    return found


async def unanswered(
    runs: list[Run], ask: Callable[[Run, str], Awaitable[Any]], questions: tuple[str, ...]
) -> list[str]:
    """Return all failures at once: which kinds they concern says more than the first."""
    broken = []
    for run in runs:
        for question in questions:
            try:
                await ask(run, question)
            except Exception as error:  # whatever it is, it is none of the asker's fault
                broken.append(f"{question} of {run.job}, {run.state}: {error!r}")
    return broken


def one_of_each(runs: list[Run], kind: Callable[[Run], object]) -> list[Run]:
    return list({kind(run): run for run in runs}.values())


async def test_whoever_asks_is_answered(lived: Harness, database_url: str) -> None:
    runs = one_of_each(await all_runs(lived), lambda run: (run.job, run.state, run.parent_id is None))
    assert {run.state for run in runs} == set(RunState)
    assert await unanswered(runs, lambda run, verb: getattr(lived.client, verb)(run.id), QUESTIONS) == []
    # The ways in show what the client answers: a run of each shape is enough for them.
    some = one_of_each(runs, lambda run: (run.state, run.parent_id is None, run.worker_id is None, run.attempt > 0))
    app = Rota(database_url)
    with serving(asgi(app), app) as site:
        async with RemoteClient(site.url) as far, httpx2.AsyncClient(base_url=f"{site.url}/api/v1") as http:

            async def get(path: str) -> None:
                (await http.get(path)).raise_for_status()

            assert await unanswered(some, lambda run, verb: getattr(far, verb)(run.id), QUESTIONS) == []
            begun = [run for run in some if await far.attempts(run.id)]
            assert await unanswered(begun, lambda run, _: get(f"/executions/{run.id}"), ("execution",)) == []
            assert await unanswered(some[:1], lambda _, path: get(path), LISTS) == []

    async def show(run: Run, command: str) -> None:
        done = await asyncio.to_thread(rota, *command.split(), run.id, "--database", database_url)
        assert done.exit_code == 0, done.output

    assert await unanswered(one_of_each(some, lambda run: (run.state, run.worker_id is None)), show, ("run get",)) == []
