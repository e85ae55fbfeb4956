"""Schedules, jobs, workers, queues and the audit over HTTP, on both databases."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest

from rota.app import Rota
from rota.store import Store, open_database

API = "/api/v1"
NEWS = {"name": "news", "job": "crawl", "every": "30m", "payload": {"url": "https://example.com"}}


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Rota]:
    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    app = Rota(database_url)

    @app.job
    def crawl(url: str) -> None: ...

    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    yield app
    await app.aclose()


async def news(http: httpx2.AsyncClient, **changes: Any) -> dict[str, Any]:
    answer = await http.post("/schedules", json={**NEWS, **changes})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_change_may_depend_on_nobody_having_been_faster(http: httpx2.AsyncClient) -> None:
    await news(http)
    seen = (await http.get("/schedules/news")).headers["etag"]
    first = await http.patch("/schedules/news", json={"every": "1h"}, headers={"If-Match": seen})
    assert first.status_code == 200
    assert first.headers["etag"] != seen
    for attempt in (
        http.patch("/schedules/news", json={"every": "3h"}, headers={"If-Match": seen}),
        http.put("/schedules/news", json=NEWS, headers={"If-Match": seen}),
        http.delete("/schedules/news", headers={"If-Match": seen}),
        http.put("/schedules/none", json={**NEWS, "name": "none"}, headers={"If-Match": "*"}),
    ):
        late = await attempt
        assert (late.status_code, late.json()["code"]) == (412, "changed-meanwhile")
    assert (await http.get("/schedules/news")).json()["definition"]["every"] == "1h"
    assert (await http.delete("/schedules/news", headers={"If-Match": "*"})).status_code == 204


async def test_a_payload_that_does_not_fit_is_found_in_the_body(http: httpx2.AsyncClient) -> None:
    wrong = {"payload": {"url": 1}}
    made = await http.post("/schedules", json={**NEWS, **wrong})
    assert (made.json()["code"], made.json()["pointer"]) == ("bad-payload", "#/payload/url")
    await news(http)
    for answer, pointer in (
        (http.patch("/schedules/news", json=wrong), "#/payload/url"),
        (http.put("/schedules/news", json={**NEWS, **wrong}), "#/payload/url"),
        (http.put("/schedules/other", json=NEWS), "#/name"),
        (http.post("/schedules/news/simulate", json={"changes": wrong}), "#/changes/payload/url"),
        (
            http.post(
                "/schedules:apply", json={"owner": "me", "documents": [{**NEWS, "name": "a"}, {**NEWS, **wrong}]}
            ),
            "#/documents/1/payload/url",
        ),
    ):
        assert (await answer).json()["pointer"] == pointer


async def test_many_schedules_at_once(http: httpx2.AsyncClient) -> None:
    for name in ("a", "b", "c"):
        await news(http, name=name)
    body = {"action": "pause", "job": "crawl", "reason": "maintenance"}
    assert (await http.post("/schedules:bulk", json={**body, "expected": 2})).json()["code"] == "bulk-mismatch"
    assert (await http.post("/schedules:bulk", json={**body, "dry_run": True})).json()["matched"] == 3
    assert (await http.get("/schedules/a")).json()["state"] == "active"
    assert (await http.post("/schedules:bulk", json=body)).json() == {"matched": 3, "done": 3, "refused": []}
    assert (await http.get("/schedules/b")).json()["pause_reason"] == "maintenance"
    audit = (await http.get("/audit?kind=schedule&limit=3")).json()["items"]
    assert [(event["type"], event["actor"]) for event in audit] == [("paused", "api")] * 3
    some = {"action": "resume", "names": ["a", "nothing"]}
    result = (await http.post("/schedules:bulk", json=some)).json()
    assert (result["done"], result["refused"][0]["code"]) == (1, "unknown-schedule")
    assert (await http.post("/schedules:bulk", json={"action": "pause"})).status_code == 422


async def test_many_runs_at_once(http: httpx2.AsyncClient) -> None:
    runs = {"runs": [{"job": "crawl", "payload": {"url": str(n)}, "delay": "1h"} for n in range(5)]}
    await http.post("/runs", json=runs)
    body = {"action": "cancel", "filter": {"job": "crawl"}}
    assert (await http.post("/runs:bulk", json={**body, "dry_run": True})).json() == {"count": 5, "exact": True}
    assert (await http.post("/runs:bulk", json={**body, "expected": 4})).json()["code"] == "bulk-mismatch"
    assert (await http.post("/runs:bulk", json={"action": "cancel"})).status_code == 422
    told = await http.post("/runs:bulk", json=body, headers={"Accept": "application/x-ndjson"})
    lines = [msgspec.json.decode(line) for line in told.text.splitlines()]
    assert lines[-1] == {"result": {"matched": 5, "done": 5, "refused": []}}
    assert "progress" in lines[0]
    retried = (await http.post("/runs:bulk", json={"action": "retry", "filter": {"state": ["cancelled"]}})).json()
    assert retried["done"] == 5
    assert (await http.post("/runs:bulk", json={"action": "delete"})).json()["code"] == "bad-body"


async def test_executions_are_attempts(http: httpx2.AsyncClient) -> None:
    await http.post("/jobs", json={"name": "outside", "kind": "external", "max_retries": 0})
    for number in range(2):
        await http.post("/runs", json={"job": "outside"})
        body = {"worker": "w@1", "jobs": ["outside"], "max": 1}
        (claimed,) = (await http.post("/worker/claim", json=body)).json()["runs"]
        failed = {"fence": claimed["fence"], "error": f"no {number}"}
        answer = await http.post(f"/worker/runs/{claimed['id']}/fail", json=failed)
        assert answer.status_code < 300, answer.text
    waiting = (await http.post("/runs", json={"job": "outside", "delay": "1h"})).json()["id"]
    page = (await http.get("/jobs/outside/executions?limit=3&offset=0")).json()
    assert (page["total"], page["limit"], page["offset"]) == (2, 3, 0)
    tries = [(tried["execution_number"], tried["retry_attempt"], tried["status"]) for tried in page["executions"]]
    assert tries == [(2, 0, "failed"), (1, 0, "failed")]
    for tried in page["executions"]:
        assert (await http.get(f"/executions/{tried['id']}")).json() == tried
    assert (await http.get(f"/executions/{waiting}")).json()["code"] == "not-found"
    for wrong in ("zzz", "99999999999", "99", "", "1:1"):
        assert (await http.get(f"/executions/{tried['run_id']}:{wrong}")).json()["code"] == "not-found"
    await http.post("/runs", json={"job": "crawl", "payload": {"url": "x"}, "delay": "1h"})
    figures = (await http.get("/scheduler/metrics")).json()
    assert figures["jobs"]["scheduled"] == 2
    assert set(figures) == {"jobs", "executions", "last_check_at", "last_metrics_update", "stale_locks_cleared"}


async def test_pages_of_names_as_long_as_names_may_be(http: httpx2.AsyncClient) -> None:
    names = ["日" * 199 + last for last in "abc"]
    for name in names:
        await news(http, name=name)
    first = (await http.get("/schedules?limit=2")).json()
    rest = (await http.get("/schedules", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [one["name"] for one in first["items"] + rest["items"]] == names


async def test_a_name_may_have_a_slash(http: httpx2.AsyncClient) -> None:
    await news(http, name="team/nightly")
    assert (await http.get("/schedules/team%2Fnightly")).json()["name"] == "team/nightly"
    assert (await http.get("/schedules/team%252Fnightly")).status_code == 404
    made = await http.put("/schedules/日本%2f%2F", json={"job": "crawl", "every": "2h", "payload": NEWS["payload"]})
    assert made.json()["name"] == "日本//"
    assert made.headers["location"] == f"{API}/schedules/%E6%97%A5%E6%9C%AC%2F%2F"
    assert (await http.post("/schedules/team%2fnightly/pause")).json()["state"] == "paused"
