"""Quotas, expectations and notifications over HTTP, and the runs around a run; on both databases."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from rota.app import Rota
from rota.store import Store, open_database

API = "/api/v1"


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    app = Rota(database_url, http_allow="127.0.0.1")

    @app.job
    def crawl() -> None: ...

    @app.job(replicas=2)
    def warm() -> None: ...

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


async def test_runs_around_a_run(http: httpx2.AsyncClient) -> None:
    many = {"runs": [{"job": "crawl", "ref": "a"}, {"job": "crawl", "after": [{"run": "a", "on": "end"}]}]}
    first, second = (await http.post("/runs", json=many)).json()["items"]
    (parent,) = (await http.get(f"/runs/{second['id']}/parents")).json()["items"]
    assert (parent["id"], parent["on"], parent["state"]) == (first["id"], "end", "queued")
    (child,) = (await http.get(f"/runs/{first['id']}/children")).json()["items"]
    assert child["id"] == second["id"]
    whole = (await http.post("/runs", json={"job": "warm"})).json()
    assert (await http.get(f"/runs/{whole['id']}/replicas")).json() == {"items": [], "next_cursor": None}
    assert (await http.get("/runs/01a1e113-637e-7384-aa02-a556abf37a46/parents")).status_code == 404


async def test_a_run_is_kept_for_some_workers(http: httpx2.AsyncClient) -> None:
    run = (await http.post("/runs", json={"job": "crawl"})).json()
    assert (await http.post(f"/runs/{run['id']}/restrict", json={"only_workers": ["gpu-1"]})).status_code == 200
    explained = (await http.get(f"/runs/{run['id']}/explain")).text
    assert "gpu-1" in explained
    assert (await http.post(f"/runs/{run['id']}/restrict", json={"only_workers": None})).status_code == 200
    wrongs: list[dict[str, Any]] = [{}, {"only_workers": []}, {"only_workers": "gpu-1"}, {"only_workers": [""]}]
    for wrong in wrongs:
        assert (await http.post(f"/runs/{run['id']}/restrict", json=wrong)).status_code == 422
