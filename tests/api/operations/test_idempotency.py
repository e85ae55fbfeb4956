"""Commands repeated after a lost response do nothing twice: by their key, or by nature."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from rota.app import Rota
from rota.client.client import Client, Order
from rota.core.calendar.triggers import every
from rota.core.runs.run import RunFilter
from rota.errors import KeyReused
from rota.testing import adrain

API = "/api/v1"
ONCE = {"Idempotency-Key": "again-17"}


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    app = Rota(database_url)

    @app.job(max_attempts=1)
    def boom(n: int = 0) -> None:
        raise RuntimeError("no")

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


@pytest.fixture
async def client(app: Rota) -> Client:
    return await app.connect()


@pytest.fixture
async def failed(app: Rota, client: Client) -> str:
    run = await client.enqueue(Order("boom", {}))
    await adrain(app)
    return run.id


async def count(client: Client) -> int:
    return (await client.count(RunFilter())).count


async def test_a_retry(http: httpx2.AsyncClient, client: Client, failed: str) -> None:
    first = await http.post(f"/runs/{failed}/retry", headers=ONCE)
    again = await http.post(f"/runs/{failed[-12:]}/retry", headers=ONCE)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])
    kept = await http.post(f"/runs/{failed}/retry", json={"keep_steps": True}, headers=ONCE)
    assert (kept.status_code, kept.json()["code"]) == (422, "idempotency-key-reused")
    assert await count(client) == 2
    assert (await http.post(f"/runs/{failed}/retry")).status_code == 201


async def test_a_retry_that_keeps_steps(http: httpx2.AsyncClient, client: Client, failed: str) -> None:
    wanted = {"keep_steps": True}
    first = await http.post(f"/runs/{failed}/retry", json=wanted, headers=ONCE)
    again = await http.post(f"/runs/{failed}/retry", json=wanted, headers=ONCE)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])


async def test_the_retry_of_a_job(app: Rota, http: httpx2.AsyncClient, client: Client, failed: str) -> None:
    """The newest run is then the retry itself, which may even have failed again."""
    first = await http.post("/jobs/boom/retry", headers=ONCE)
    again = await http.post("/jobs/boom/retry", headers=ONCE)
    await adrain(app)
    late = await http.post("/jobs/boom/retry", headers=ONCE)
    assert [one.status_code for one in (first, again, late)] == [201, 200, 200]
    assert {one.json()["id"] for one in (again, late)} == {first.json()["id"]}
    assert await count(client) == 2
    assert (await http.post(f"/runs/{failed}/retry", headers=ONCE)).status_code == 422


async def test_a_trigger(http: httpx2.AsyncClient, client: Client) -> None:
    """The overlap policy would forbid a second run."""
    scopes: list[Any] = [("tenant", name) for name in "abc"]
    await client.schedules.create("news", "boom", every("1h"), overlap="skip", scopes=scopes)
    await client.schedules.create("other", "boom", every("1h"))
    first = await http.post("/schedules/news/trigger", headers=ONCE)
    again = await http.post("/schedules/news/trigger", headers=ONCE)
    assert (first.status_code, again.status_code, first.json()) == (201, 201, again.json())
    assert [run["scope"]["id"] for run in again.json()["items"]] == ["a", "b", "c"]
    assert await count(client) == 3
    others: dict[str, dict[str, str]] = {"news": {"scope": "tenant/a"}, "other": {}}
    for path, body in others.items():
        refused = await http.post(f"/schedules/{path}/trigger", json=body, headers=ONCE)
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency-key-reused")
    assert (await http.post("/schedules/news/trigger")).status_code == 409


async def test_two_at_once(client: Client, failed: str) -> None:
    made = await asyncio.gather(*[client.retry(failed, idempotency_key="k") for _ in range(8)])
    assert (len({one.id for one in made}), sum(one.created for one in made)) == (1, 1)
    jobs = await asyncio.gather(
        *[client.retry_job("boom", idempotency_key="k") for _ in range(2)], return_exceptions=True
    )
    assert [type(one) for one in jobs] == [KeyReused, KeyReused]
    await client.schedules.create("one", "boom", every("1h"))
    await client.schedules.create("two", "boom", every("1h"))
    both = [client.schedules.trigger(name, force=True, idempotency_key="t") for name in ("one", "two")]
    answers = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(one).__name__ for one in answers) == ["KeyReused", "list"]


async def test_what_needs_no_key(app: Rota, http: httpx2.AsyncClient, client: Client, failed: str) -> None:
    now = datetime.now(UTC)
    await client.schedules.create("news", "boom", every("1h"), start_at=now - timedelta(days=2))
    stretch: dict[str, Any] = {
        "from": (now - timedelta(hours=5)).isoformat(),
        "to": (now - timedelta(hours=2)).isoformat(),
    }
    for path, body, done in (
        ("/runs:bulk", {"action": "retry", "filter": {"job": "boom"}}, "done"),
        ("/schedules/news/backfill", {**stretch, "concurrency": 5}, "count"),
        ("/runs:bulk", {"action": "cancel", "filter": {"job": "boom"}}, "done"),
    ):
        first, again = await http.post(path, json=body), await http.post(path, json=body)
        assert (first.status_code, again.status_code) == (200, 200), (first.text, again.text)
        assert (first.json()[done] > 0, again.json()[done]) == (True, 0), (path, first.text, again.text)
