"""What people look at, over HTTP and through a client of a server, on both databases."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from rota.api import asgi
from rota.app import Rota
from rota.core.overview import Overview
from rota.remote import RemoteClient
from rota.store import open_database
from rota.store.store import Store
from rota.testing import adrain
from tests.support.serving import Site, serving


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    store = Store(open_database(database_url))
    await store.migrate()
    app = Rota(database_url)

    @app.job
    def greet(name: str = "you") -> str:
        return f"hello {name}"

    await store.save_jobs(app.registry.definitions())
    await store.close()
    yield app
    await app.aclose()


@pytest.fixture
async def http(app: Rota) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682/api/v1") as client:
        yield client


@pytest.fixture
def site(app: Rota) -> Iterator[Site]:
    with serving(asgi(app), app) as site:
        yield site


@pytest.fixture
async def far(site: Site) -> AsyncIterator[RemoteClient]:
    async with RemoteClient(site.url) as client:
        yield client


async def test_the_overview(http: httpx2.AsyncClient, app: Rota) -> None:
    await http.post("/runs", json={"job": "greet"})
    await http.put("/schedules/nightly", json={"job": "greet", "cron": "0 3 * * *", "timezone": "Europe/Berlin"})
    await http.post("/queues/default/pause", json={"reason": "later"})
    found = (await http.get("/overview")).json()
    assert (found["live"]["queued"], found["live"]["capped"]) == (1, False)
    assert [(one["kind"], one["subject"]) for one in found["attention"]] == [("queue_paused", "default")]
    assert [(one["schedule"], one["rule"]) for one in found["next_fires"]] == [
        ("nightly", "every day at 03:00, Europe/Berlin")
    ]
    assert (await http.get("/overview?job=x")).status_code == 422


async def test_a_client_of_a_server_sees_the_same_overview(far: RemoteClient, app: Rota) -> None:
    near = await app.connect()
    await adrain(app)
    found = await far.insight.overview()
    assert isinstance(found, Overview)
    assert found.schedules == (await near.insight.overview()).schedules
