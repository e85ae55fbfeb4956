"""Overview, series and timeline over HTTP and through a remote client, on both databases."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import httpx2
import pytest

from rota.api import asgi
from rota.app import Rota
from rota.core.monitoring.counters import FEW_MINUTES, Counted
from rota.remote import RemoteClient
from rota.testing import adrain
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import rota
from tests.support.servers.http_server import Site, serving

API = "/api/v1"


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = Rota(database_url)

    @app.job
    def greet(name: str = "you") -> str:
        return f"hello {name}"

    await save_jobs_of(app)
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


async def test_the_checks_of_the_doctor(
    http: httpx2.AsyncClient, far: RemoteClient, app: Rota, database_url: str
) -> None:
    """Whoever asks a server gets what `rota doctor` says, without the address of the database."""
    await http.post("/runs", json={"job": "greet", "queue": "mail"})
    answer = await http.get("/database/checks")
    checks = answer.json()["items"]
    doctor = await asyncio.to_thread(rota, "doctor", "--database", database_url, "--json")
    told = json.loads(doctor.stdout)["checks"]
    assert [(check["name"], check["level"]) for check in checks] == [(check["name"], check["level"]) for check in told]
    found = {check["name"]: check for check in checks}
    assert found["database"]["words"].startswith("the database answers, at schema ")
    assert database_url.rpartition("/")[2] not in answer.text
    assert (found["queues"]["level"], found["queues"]["hint"]) == ("problem", "rota worker MODULE:APP --queues mail")
    assert found["disk"]["facts"]["size"] > 0
    assert [check.name for check in await far.database.examine()] == list(found)


async def test_schedules_with_their_last_runs(http: httpx2.AsyncClient, far: RemoteClient, app: Rota) -> None:
    past = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z"}
    for name in ("one", "two"):
        await http.put(f"/schedules/{name}", json={"job": "greet", "every": "1h", "overlap": "allow"})
    await http.post("/schedules/one/backfill", json={**past, "concurrency": 9})
    await adrain(app)
    listed = (await http.get("/schedules?recent=2")).json()["items"]
    assert [(one["name"], len(one["recent"])) for one in listed] == [("one", 2), ("two", 0)]
    assert [run["state"] for run in listed[0]["recent"]] == ["succeeded", "succeeded"]
    assert listed[0]["p95_duration_ms"] is not None
    whole = (await http.get("/schedules/one?recent=30")).json()
    assert whole["recent"][-2:] == listed[0]["recent"]
    assert "recent" not in (await http.get("/schedules/one")).json()
    for wrong in ("0", "101", "x"):
        assert (await http.get(f"/schedules?recent={wrong}")).status_code == 422
    assert (await http.get("/schedules?recent=100&limit=500")).status_code == 200
    near = await app.connect()
    assert await far.schedules.recent(["one", "nobody"], 2) == await near.schedules.recent(["one", "nobody"], 2)


async def test_charts(http: httpx2.AsyncClient, far: RemoteClient, app: Rota) -> None:
    near = await app.connect()
    now = await near.store.now()
    await near.store.monitoring.record("a", {(300, now // FEW_MINUTES * FEW_MINUTES): Counted(runs={"failed": 2})})
    found = (await http.get("/series")).json()
    assert (found["step"], found["buckets"][-1]["runs"]) == ("15m", {"failed": 2})
    asked = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "step": "6h"}
    whole = (await http.get("/series", params=asked)).json()
    assert (whole["from"], whole["to"], len(whole["buckets"])) == (asked["from"], asked["to"], 4)
    for wrong in ("step=1s", "step=1m", "from=2026-01-01", "to=2020-01-01T00:00:00Z&from=2021-01-01T00:00:00Z"):
        assert (await http.get(f"/series?{wrong}")).status_code == 422, wrong
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    assert await far.monitoring.series(begin, end, "6h") == await near.monitoring.series(begin, end, "6h")


async def test_they_are_not_for_tokens_of_one_scope(database_url: str) -> None:
    app = Rota(database_url, auth=True)
    client = await app.connect()
    await client.store.migrate()
    token = await client.tokens.create("narrow", "viewer", scope=("tenant", "42"))
    transport = httpx2.ASGITransport(app=asgi(app))
    headers = {"Authorization": f"Bearer {token.secret}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7682/api/v1") as http:
        for path in ("/overview", "/series", "/timeline"):
            assert (await http.get(path, headers=headers)).status_code == 403
            assert (await http.get(path)).status_code == 401
    await app.aclose()


async def test_a_queue_says_since_when_its_oldest_run_waits(http: httpx2.AsyncClient) -> None:
    assert [one["oldest_at"] for one in (await http.get("/queues")).json()["items"]] == [None]
    run = (await http.post("/runs", json={"job": "greet"})).json()
    assert [one["oldest_at"] for one in (await http.get("/queues")).json()["items"]] == [run["run_at"]]
