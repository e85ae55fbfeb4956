"""External work: the remote client behaves like the local one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.api import asgi
from rota.app import Rota
from rota.client.client import Client, Order
from rota.core.external.external import Assignment
from rota.core.progress.steps import StepState
from rota.core.runs.error_fingerprint import fingerprint_of
from rota.core.runs.run import RunError
from rota.core.states import RunState
from rota.errors import (
    AlreadyReported,
    LeaseLost,
)
from rota.remote import RemoteClient
from rota.store import Store, open_database
from tests.support.servers.http_server import Site, serving

MISSING = "00000000-0000-7000-8000-000000000000"

Verb = Callable[[Client], Awaitable[Any]]


async def introduced(url: str) -> Rota:
    app = Rota(url, http_allow="127.0.0.0/8")

    @app.job
    def rest() -> None: ...

    app.external("label", max_attempts=3, backoff=["1h"])
    store = Store(open_database(url))
    await store.migrate()
    await store.save_jobs(app.registry.definitions())
    await store.close()
    return app


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = await introduced(database_url)
    yield app
    await app.aclose()


@pytest.fixture
def site(app: Rota) -> Iterator[Site]:
    with serving(asgi(app), app) as site:
        yield site


@pytest.fixture
async def far(site: Site) -> AsyncIterator[RemoteClient]:
    async with RemoteClient(site.url) as client:
        yield client


async def until_promoted(app: Rota, look: Callable[[], Awaitable[list[Assignment]]]) -> list[Assignment]:
    store = (await app.connect()).store
    while not (found := await look()):
        await store.promote(100)
    return found


async def test_work_outside_is_claimed_told_of_and_ended(app: Rota, far: RemoteClient) -> None:
    made = await far.enqueue(Order("label", {"image": "cat.png"}))
    external = far.external
    assert await external.claim("w", queues=["other"]) == []
    (run,) = await external.claim("w", jobs=["label"], lease="90s", held=[], labels=["gpu"], version="1.2")
    assert (run.run_id, run.payload, run.attempt) == (made.id, {"image": "cat.png"}, 1)
    assert not (await external.heartbeat(run.run_id, run.fence)).cancelling
    await external.progress(run.run_id, run.fence, 40, "looking")
    assert await external.step(run.run_id, run.fence, "look", "succeeded", result={"n": 1}) is StepState.SUCCEEDED
    for _ in range(2):
        await external.logs(run.run_id, run.fence, ["one", {"text": "two", "level": "error"}], no=1)
    assert [line.text for line in await far.logs(run.run_id)] == ["one", "two"]
    error = RunError("Blurred", "too dark", code="E7")
    assert await external.step(run.run_id, run.fence, "see", "failed", error=error) is StepState.FAILED
    assert await external.fail(run.run_id, run.fence, error, after=timedelta(milliseconds=1)) is RunState.SCHEDULED
    (again,) = await until_promoted(app, lambda: external.claim("w", jobs="label"))
    assert (again.attempt, again.steps) == (2, {"look": {"n": 1}})
    for call in (
        external.heartbeat(run.run_id, run.fence),
        external.progress(run.run_id, run.fence, 50),
        external.step(run.run_id, run.fence, "look", "failed", error="x"),
        external.logs(run.run_id, run.fence, "late"),
        external.complete(run.run_id, run.fence, 7),
        external.cancelled(run.run_id, run.fence),
    ):
        with pytest.raises((LeaseLost, AlreadyReported)):
            await call
    assert await external.complete(again.run_id, again.fence, {"label": "cat"}) is RunState.SUCCEEDED
    assert await external.complete(again.run_id, again.fence, {"label": "cat"}) is RunState.SUCCEEDED
    done = await far.get(run.run_id)
    assert (done.result, done.attempt) == ({"label": "cat"}, 2)
    (attempt, _) = await far.attempts(run.run_id)
    assert attempt.error == msgspec.structs.replace(error, fingerprint=fingerprint_of(error))
    (see,) = [step for step in await far.steps(run.run_id) if step.id == "see"]
    assert see.error == msgspec.to_builtins(attempt.error)


async def test_a_claim_waits_longer_than_a_call_may_take(app: Rota, site: Site) -> None:
    async with RemoteClient(site.url, timeout="700ms") as client:
        assert await client.external.claim("w", wait="1200ms") == []
        waiting = asyncio.create_task(client.external.claim("w", wait="20s"))
        made = await client.enqueue(Order("label", {}))
        assert [run.run_id for run in await waiting] == [made.id]


async def test_what_a_lost_answer_claimed_is_given_back(far: RemoteClient) -> None:
    await far.enqueue(Order("label", {}))
    (lost,) = await far.external.claim("w")
    assert await far.external.claim("other") == []
    (found,) = await far.external.claim("w", held=[])
    assert (found.run_id, found.attempt) == (lost.run_id, 1)
