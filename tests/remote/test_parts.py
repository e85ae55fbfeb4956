"""External work: the remote client behaves like the local one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from rota.api import asgi
from rota.app import Rota
from rota.client.client import Client, Order
from rota.remote import RemoteClient
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.servers.http_server import Site, serving

MISSING = "00000000-0000-7000-8000-000000000000"

Verb = Callable[[Client], Awaitable[Any]]


async def introduced(url: str) -> Rota:
    app = Rota(url, http_allow="127.0.0.0/8")

    @app.job
    def rest() -> None: ...

    app.external("label", max_attempts=3, backoff=["1h"])
    await save_jobs_of(app)
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
