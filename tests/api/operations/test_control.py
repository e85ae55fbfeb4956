"""Schedules, jobs, workers, queues and the audit over HTTP, on both databases."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest

from rota.app import Rota
from rota.core.calendar.triggers import every
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


async def test_a_schedule_is_made_seen_changed_and_deleted(http: httpx2.AsyncClient) -> None:
    made = await news(http)
    assert (made["state"], made["rule"], made["definition"]["every"]) == ("active", "every 30 minutes", "30m")
    assert (await http.get("/schedules/news")).json() == made
    patched = (await http.patch("/schedules/news", json={"every": "1h", "overlap": "allow"})).json()
    assert (patched["rule"], patched["definition"]["overlap"]) == ("every hour", "allow")
    assert patched["definition"]["payload"] == NEWS["payload"]
    back = (await http.patch("/schedules/news", json={"overlap": None})).json()
    assert "overlap" not in back["definition"]
    put = (await http.put("/schedules/news", json={"job": "crawl", "every": "2h", "payload": NEWS["payload"]})).json()
    assert put["rule"] == "every 2 hours"
    assert (await http.delete("/schedules/news")).status_code == 204
    assert (await http.get("/schedules/news")).json()["code"] == "unknown-schedule"


async def test_put_makes_what_is_not_there(http: httpx2.AsyncClient) -> None:
    body = {"job": "crawl", "every": "2h", "payload": NEWS["payload"]}
    only_new = {"If-None-Match": "*"}
    made = await http.put("/schedules/fresh", json=body, headers=only_new)
    assert (made.status_code, made.headers["location"]) == (201, f"{API}/schedules/fresh")
    assert (await http.put("/schedules/fresh", json=body, headers=only_new)).status_code == 409
    again = await http.put("/schedules/fresh", json=body)
    assert (again.status_code, again.json()["revision"]) == (200, 1)
    assert (await http.put("/schedules/fresh", json={**body, "name": "other"})).json()["pointer"] == "#/name"


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


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"every": "0s"}, "bad-trigger"),
        ({"every": "soon"}, "bad-duration"),
        ({"every": None, "once": "soon"}, "bad-trigger"),
        ({"timezone": "Europe/Berlinn", "cron": "0 9 * * *", "every": None}, "bad-trigger"),
        ({"windows": ["late"]}, "bad-trigger"),
        ({"every": None}, "invalid"),
        ({"every": "1h", "cron": "* * * * *"}, "invalid"),
        ({"cron": "61 * * * *", "every": None}, "bad-trigger"),
        ({"job": "nothing"}, "unknown-job"),
        ({"evry": "1h"}, "unknown-option"),
        ({"payload": {"link": "x"}}, "bad-payload"),
        ({"overlap": "sometimes"}, "invalid"),
        ({"name": ""}, "invalid"),
    ],
)
async def test_a_bad_schedule_is_refused_whole(http: httpx2.AsyncClient, change: dict[str, Any], code: str) -> None:
    answer = await http.post("/schedules", json={**NEWS, **change})
    assert answer.json()["code"] == code, answer.text
    assert (await http.get("/schedules")).json()["items"] == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cron": "61 * * * *", "every": None}, "minute"),
        ({"cron": "0 9 * * *", "every": None, "timezone": "Europe/Berlinn"}, "timezone"),
        ({"every": "0s"}, "interval"),
        ({"once": "soon", "every": None}, "once"),
        ({"exclude": ["2026-02-30"]}, "exclude"),
    ],
)
async def test_a_rule_that_cannot_be_says_which_part(
    http: httpx2.AsyncClient, change: dict[str, Any], field: str
) -> None:
    refused = (await http.post("/schedules", json={**NEWS, **change})).json()
    assert (refused["status"], refused["code"], refused["field"]) == (422, "bad-trigger", field)


async def test_a_payload_that_does_not_fit_is_found_in_the_body(http: httpx2.AsyncClient) -> None:
    wrong = {"payload": {"url": 1}}
    made = await http.post("/schedules", json={**NEWS, **wrong})
    assert (made.json()["code"], made.json()["pointer"]) == ("bad-payload", "#/payload/url")
    await news(http)
    for answer, pointer in (
        (http.patch("/schedules/news", json=wrong), "#/payload/url"),
        (http.put("/schedules/news", json={**NEWS, **wrong}), "#/payload/url"),
        (http.post("/schedules/news/simulate", json={"changes": wrong}), "#/changes/payload/url"),
        (
            http.post(
                "/schedules:apply", json={"owner": "me", "documents": [{**NEWS, "name": "a"}, {**NEWS, **wrong}]}
            ),
            "#/documents/1/payload/url",
        ),
    ):
        assert (await answer).json()["pointer"] == pointer


async def test_lists_are_paged_by_name(http: httpx2.AsyncClient) -> None:
    for name in ("c", "a/b", "é", "b"):
        await news(http, name=name)
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await http.get("/schedules", params={"limit": 1, **cursor})).json()
        seen += [item["name"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == sorted(seen)
    assert set(seen) == {"c", "a/b", "é", "b"}
    assert (await http.get("/schedules?cursor=%21")).status_code == 422


async def test_pause_resume_and_trigger(http: httpx2.AsyncClient) -> None:
    await news(http)
    paused = (await http.post("/schedules/news/pause", json={"reason": "rest", "until": "2h"})).json()
    assert (paused["state"], paused["pause_reason"], paused["paused_by"]) == ("paused", "rest", "api")
    assert paused["resume_at"] is not None
    assert (await http.post("/schedules/news/pause", json={"until": "2020-01-01T00:00:00Z"})).status_code == 422
    assert (await http.post("/schedules/news/resume")).json()["state"] == "active"
    triggered = await http.post("/schedules/news/trigger")
    assert (triggered.status_code, len(triggered.json()["items"])) == (201, 1)
    again = await http.post("/schedules/news/trigger")
    assert (again.status_code, again.json()["code"]) == (409, "overlapping")
    assert (await http.post("/schedules/news/trigger", json={"force": True})).status_code == 201
    told = [event["type"] for event in (await http.get("/schedules/news/events")).json()["items"]]
    assert "triggered" in told


async def test_looking_ahead_and_back(http: httpx2.AsyncClient) -> None:
    await news(http, cron="30 2 * * *", timezone="Europe/Berlin", every=None)
    fires = (await http.get("/schedules/news/preview", params={"n": 400})).json()["items"]
    assert len(fires) == 400
    assert any("gap" in fire["marks"] for fire in fires)
    assert (await http.get("/schedules/news/occurrences")).json()["items"] is not None
    at = fires[0]["plan_time"]
    explained = (await http.get("/schedules/news/explain", params={"at": at})).json()
    assert explained["verdict"]
    assert explained["words"]
    newest = (await http.get("/schedules/news/explain")).json()
    assert newest["facts"]["at"] == (await http.get("/schedules/news")).json()["next_plan"], "none has come yet"
    assert (await http.get("/schedules/news/explain", params={"at": "noon"})).status_code == 422
    simulated = await http.post("/schedules/news/simulate", json={"span": "3d", "changes": {"cron": "0 * * * *"}})
    assert sum(simulated.json()["counts"].values()) == 72
    assert (await http.get("/schedules/news")).json()["definition"]["cron"] == "30 2 * * *"


async def test_occurrences_go_on_where_the_page_before_ended(http: httpx2.AsyncClient) -> None:
    await news(http)
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z"}
    await http.post("/schedules/news/backfill", json=span)
    first = (await http.get("/schedules/news/occurrences", params={**span, "limit": 2})).json()
    second = (await http.get("/schedules/news/occurrences", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    third = (await http.get("/schedules/news/occurrences", params={"limit": 2, "cursor": second["next_cursor"]})).json()
    told = [one["plan_time"][11:16] for page in (first, second, third) for one in page["items"]]
    assert told == ["00:00", "00:30", "01:00", "01:30", "02:00"]
    assert third["next_cursor"] is None
    assert (await http.get("/schedules/news/occurrences?cursor=bm9uZQ")).status_code == 422


async def test_backfill_counts_first(http: httpx2.AsyncClient) -> None:
    await news(http)
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z"}
    dry = (await http.post("/schedules/news/backfill", json={**span, "dry_run": True})).json()
    assert (await http.get("/runs")).json()["items"] == []
    done = (await http.post("/schedules/news/backfill", json=span)).json()
    made = len((await http.get("/runs")).json()["items"])
    assert made == 5
    assert dry["count"] == done["count"] == made
    assert (
        await http.post("/schedules/news/backfill", json={"from": span["to"], "to": span["from"]})
    ).status_code == 422


async def test_many_schedules_at_once(http: httpx2.AsyncClient) -> None:
    for name in ("a", "b", "c"):
        await news(http, name=name)
    body = {"action": "pause", "job": "crawl", "reason": "maintenance"}
    assert (await http.post("/schedules:bulk", json={**body, "expected": 2})).json()["code"] == "bulk-mismatch"
    assert (await http.post("/schedules:bulk", json={**body, "dry_run": True})).json()["matched"] == 3
    assert (await http.get("/schedules/a")).json()["state"] == "active"
    assert (await http.post("/schedules:bulk", json=body)).json() == {"matched": 3, "done": 3, "refused": []}
    assert (await http.get("/schedules/b")).json()["pause_reason"] == "maintenance"
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


async def test_a_job_as_a_whole(http: httpx2.AsyncClient) -> None:
    await news(http)
    run = (await http.post("/runs", json={"job": "crawl", "payload": {"url": "x"}, "delay": "1h"})).json()
    job = (await http.get("/jobs/crawl")).json()
    assert (job["name"], job["status"]["state"]) == ("crawl", "scheduled")
    assert [one["name"] for one in (await http.get("/jobs")).json()["items"]] == ["crawl"]
    paused = (await http.post("/jobs/crawl/pause", json={"reason": "down"})).json()
    assert (paused["state"], paused["pause_reason"]) == ("paused", "down")
    assert (await http.post("/jobs/crawl/resume")).json()["state"] == "scheduled"
    assert (await http.get("/jobs/crawl/runs")).json()["items"][0]["id"] == run["id"]
    assert (await http.post("/jobs/crawl/cancel")).json()["cancelled"] == 1
    assert (await http.get("/schedules/news")).json()["state"] == "job paused"
    refused = (await http.post("/jobs/crawl/cancel")).json()
    assert (refused["code"], refused["hint"]) == ("job-state", "possible now: resume, schedule, update, delete")
    assert (await http.post("/jobs/crawl/retry")).json()["code"] == "job-state"
    assert (await http.post("/jobs/crawl/resume")).json()["state"] == "scheduled"
    assert (await http.get("/schedules/news")).json()["state"] == "active"
    again = await http.post("/jobs/crawl/retry")
    assert (again.status_code, again.json()["retry_of"]) == (201, run["id"])
    assert (await http.get("/jobs/crawl/stats")).json()["cancelled"] == 1
    for path in ("", "/runs", "/stats", "/executions"):
        assert (await http.get(f"/jobs/nothing{path}")).json()["code"] == "unknown-job"


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


async def test_schedules_of_code_are_seen_too(app: Rota, http: httpx2.AsyncClient) -> None:
    await (await app.connect()).schedules.create("own", "crawl", every("1h"), payload={"url": "x"})
    assert (await http.get("/schedules?job=crawl")).json()["items"][0]["name"] == "own"
    assert (await http.get("/schedules?owner=nobody")).json()["items"] == []


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


async def test_a_time_is_no_number(http: httpx2.AsyncClient) -> None:
    await news(http)
    assert (await http.get("/schedules/news/preview?after=185")).status_code == 422


@pytest.mark.parametrize("until", ["9999-12-31T23:59:59-23:59", "2300-01-01T00:00:00Z"])
async def test_a_pause_that_nobody_could_read_back(http: httpx2.AsyncClient, until: str) -> None:
    await news(http)
    assert (await http.post("/schedules/news/pause", json={"until": until})).status_code == 422
    assert (await http.get("/schedules/news")).json()["state"] == "active"
