"""Mounted inside another application: paths below its own, and no remote callers without authentication."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from rota.app import Rota

SAME = {"Origin": "http://127.0.0.1"}


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Rota]:
    app = Rota(sqlite_url, auth=True, allowed_hosts="shop.example.com")

    @app.job
    def hello() -> None: ...

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


def mounted(app: Rota, client: tuple[str, int] = ("127.0.0.1", 1), *, trusted: bool = False) -> httpx2.AsyncClient:
    web = FastAPI()
    web.mount("/jobs", app.asgi(trusted=trusted))
    transport = httpx2.ASGITransport(app=web, client=client)
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def test_addresses_are_below_the_path_of_the_mount(app: Rota) -> None:
    token = (await (await app.connect()).tokens.create("ada", "admin")).secret
    async with mounted(app) as http:
        assert (await http.get("/jobs/api/v1/runs")).status_code == 401
        signed = await http.post("/jobs/api/v1/session", json={"token": token}, headers=SAME)
        assert signed.status_code == 201
        made = await http.post("/jobs/api/v1/runs", json={"job": "hello"}, headers=SAME)
        assert made.headers["location"] == f"/jobs/api/v1/runs/{made.json()['id']}"
        assert (await http.get(made.headers["location"])).status_code == 200
        schedule = {"name": "s", "job": "hello", "every": "1h"}
        placed = await http.post("/jobs/api/v1/schedules", json=schedule, headers=SAME)
        assert (await http.get(placed.headers["location"])).status_code == 200
        for page in ("/jobs/", f"/jobs/runs/{made.json()['id']}"):
            assert '<base href="/jobs/" />' in (await http.get(page)).text
        assert (await http.get("/jobs/openapi.json")).json()["servers"] == [{"url": "/jobs/"}]
        assert 'href="/jobs/openapi.json"' in (await http.get("/jobs/docs")).text
        assert (await http.delete("/jobs/api/v1/session", headers=SAME)).status_code == 204
        assert (await http.get("/jobs/nothing")).json()["code"] == "not-found"


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", "2001:db8::1"])
async def test_without_auth_nobody_from_elsewhere_is_answered(sqlite_url: str, address: str) -> None:
    app = Rota(sqlite_url)
    async with mounted(app, (address, 1)) as http:
        for path in ("/healthz", "/api/v1/runs", "/"):  # by whatever name they call us
            refused = await http.get(f"/jobs{path}", headers={"Host": "localhost"})
            assert (refused.status_code, refused.json()["code"]) == (403, "not-local")
    async with mounted(app, (address, 1), trusted=True) as http:
        assert (await http.get("/jobs/api/v1/runs")).status_code == 200
    await app.aclose()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1", "testclient", ""])
async def test_without_auth_this_machine_is_answered(sqlite_url: str, address: str) -> None:
    app = Rota(sqlite_url)
    async with mounted(app, (address, 1)) as http:
        assert (await http.get("/jobs/api/v1/runs")).status_code == 200
    await app.aclose()


async def test_with_auth_whoever_has_a_token_is_answered(app: Rota) -> None:
    token = (await (await app.connect()).tokens.create("ada", "viewer")).secret
    async with mounted(app, ("192.0.2.7", 1)) as http:
        headers = {"Authorization": f"Bearer {token}", "Host": "shop.example.com"}
        assert (await http.get("/jobs/api/v1/runs", headers=headers)).status_code == 200
        assert (await http.get("/jobs/api/v1/runs")).status_code == 401
