"""Quotas, expectations and notifications over HTTP, and the runs around a run; on both databases."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from rota.app import Rota
from rota.store import Store, open_database
from tests.support.servers.notification_receivers import Hook, hook

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


async def test_quotas_are_set_seen_and_dropped(http: httpx2.AsyncClient) -> None:
    of_kind = (await http.put("/quotas/tenant", json={"max_concurrency": 5})).json()
    assert (of_kind["kind"], of_kind["id"], of_kind["max_concurrency"], of_kind["owner"]) == ("tenant", None, 5, "api")
    own = (await http.put("/quotas/tenant/42", json={"max_queued": 1, "rate": "10/1m", "max_concurrency": 2})).json()
    assert (own["id"], own["rate"]) == ("42", "10/1m")
    assert (await http.get("/quotas")).json()["items"] == [of_kind, own]
    assert (await http.get("/quotas/tenant/42")).json() == own
    run = {"job": "crawl", "scope": {"kind": "tenant", "id": "42"}}
    answers = [await http.post("/runs", json=run) for _ in range(4)]
    assert answers[0].status_code == 201
    assert answers[-1].json()["code"] == "quota-exceeded"
    assert (await http.delete("/quotas/tenant/42")).status_code == 204
    for gone in (await http.get("/quotas/tenant/42"), await http.delete("/quotas/tenant/42")):
        assert (gone.status_code, gone.json()["code"]) == (404, "unknown-quota")


@pytest.mark.parametrize(
    "wrong",
    [{}, {"max_concurrency": -1}, {"max_concurrency": "5"}, {"rate": "often"}, {"rate": 5}, {"what": 1}],
    ids=str,
)
async def test_a_quota_that_cannot_be_is_refused(http: httpx2.AsyncClient, wrong: dict[str, Any]) -> None:
    assert (await http.put("/quotas/tenant", json=wrong)).status_code == 422


async def test_expectations_are_set_changed_and_dropped(http: httpx2.AsyncClient) -> None:
    path = "/expectations/job/crawl"
    assert (await http.get(path)).json()["code"] == "not-expected"
    body = {"success_every": "26m", "min_success_rate": "95%", "over": 10}
    made = (await http.put(path, json=body)).json()
    assert made["expect"] == {"success_every": "26m", "min_success_rate": 0.95, "over": 10}
    patched = (await http.patch(path, json={"start_within": "5m", "min_success_rate": None})).json()
    assert patched["expect"] == {"start_within": "5m", "success_every": "26m"}
    assert (await http.put(path, json={"max_duration": "1h"})).json()["expect"] == {"max_duration": "1h"}
    assert [one["subject"] for one in (await http.get("/expectations")).json()["items"]] == ["crawl"]
    assert (await http.get("/expectations?breached=true")).json()["items"] == []
    assert (await http.delete(path)).status_code == 204
    assert (await http.delete(path)).json()["code"] == "not-expected"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/job/crawl", {}, 422),
        ("/job/crawl", {"success_every": "often"}, 422),
        ("/job/crawl", {"min_success_rate": 2}, 422),
        ("/job/crawl", {"max_consecutive_failures": 2**70}, 422),
        ("/job/nothing", {"success_every": "1h"}, 404),
        ("/queue/default", {"success_every": "1h"}, 422),
        ("/schedule/nothing", {"success_every": "1h"}, 404),
    ],
)
async def test_what_cannot_be_expected(http: httpx2.AsyncClient, path: str, body: dict[str, Any], status: int) -> None:
    assert (await http.put(f"/expectations{path}", json=body)).status_code == status


@pytest.fixture
async def receiver() -> AsyncIterator[Hook]:
    async with hook() as receiver:
        yield receiver


async def test_notifications_are_made_tried_changed_and_dropped(http: httpx2.AsyncClient, receiver: Hook) -> None:
    body = {
        "name": "ops",
        "to": f"{receiver.url}?token=abc",
        "on": ["failure"],
        "jobs": ["crawl"],
        "secret": "s3cr3t",
    }
    made = await http.post("/notifications", json=body)
    assert (made.status_code, made.headers["location"]) == (201, f"{API}/notifications/ops")
    assert (made.json()["on"], made.json()["jobs"], made.json()["enabled"]) == (["failure"], ["crawl"], True)
    assert "s3cr3t" not in made.text
    assert "abc" not in made.text
    assert (await http.post("/notifications", json={**body, "at_most": 5})).status_code == 409
    tried = await http.post("/notifications/ops/test")
    assert tried.status_code == 200, tried.text
    assert len(receiver.came) == 1
    changed = (await http.patch("/notifications/ops", json={"enabled": False, "jobs": None})).json()
    assert (changed["enabled"], changed["jobs"], changed["on"]) == (False, [], ["failure"])
    assert [one["name"] for one in (await http.get("/notifications")).json()["items"]] == ["ops"]
    assert (await http.delete("/notifications/ops")).status_code == 204
    for gone in (await http.get("/notifications/ops"), await http.patch("/notifications/ops", json={"at_most": 1})):
        assert (gone.status_code, gone.json()["code"]) == (404, "unknown-notification")


@pytest.mark.parametrize(
    "wrong",
    [{}, {"to": "nowhere"}, {"on": []}, {"on": ["boom"]}, {"at_most": 0}, {"at_most": 2**70}, {"jobs": ["x"] * 1_001},
     {"jobs": [1]}, {"secret": ""}, {"enabled": True}, {"name": ""}],
    ids=str,
)  # fmt: skip
async def test_a_notification_that_cannot_be_is_refused(http: httpx2.AsyncClient, wrong: dict[str, Any]) -> None:
    body = {"name": "ops", "to": "https://example.com/hook", **wrong} if wrong else {"name": "ops"}
    assert (await http.post("/notifications", json=body)).status_code == 422


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
