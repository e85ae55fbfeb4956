"""Data jobs over HTTP: created with or without a schedule, changed under an ETag, deleted."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest

from rota.app import Rota
from rota.core.jobs.status import JobFacts
from rota.errors import UnknownJob
from rota.store import Store, open_database
from rota.store.databases.database import Tx
from rota.store.jobs import data_jobs, jobs

API = "/api/v1"
PING = {"name": "ping", "url": "https://example.com/health"}


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


async def make(http: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await http.post("/jobs", json={**PING, **body})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_job_is_made_seen_changed_and_dropped(http: httpx2.AsyncClient) -> None:
    answer = await http.post("/jobs", json={**PING, "headers": {"Authorization": "Bearer x"}, "tags": ["net"]})
    assert (answer.status_code, answer.headers["location"], answer.headers["etag"]) == (201, f"{API}/jobs/ping", '"1"')
    made = answer.json()
    assert (made["kind"], made["http"]["url"], made["timeout"]) == ("http", PING["url"], "10s")
    assert (made["schedule"], made["run"]) == (None, None)
    assert "Bearer x" not in answer.text
    seen = await http.get("/jobs/ping")
    assert (seen.headers["etag"], seen.json()["tags"]) == ('"1"', ["net"])
    patched = await http.patch("/jobs/ping", json={"timeout": "3s", "tags": None})
    assert (patched.headers["etag"], patched.json()["timeout"], patched.json()["tags"]) == ('"2"', "3s", [])
    assert "Authorization" in patched.json()["http"]["headers"]
    put = await http.put("/jobs/ping", json={"url": PING["url"], "method": "HEAD"})
    assert (put.json()["version"], put.json()["timeout"], put.json()["http"]["headers"]) == (3, "10s", {})
    assert (await http.delete("/jobs/ping")).status_code == 204
    assert (await http.get("/jobs/ping")).json()["code"] == "unknown-job"


async def test_every_kind_can_be_made(http: httpx2.AsyncClient) -> None:
    command = await http.post("/jobs", json={"name": "backup", "argv": ["pg_dump", "shop"], "env": {"A": "b"}})
    assert (command.json()["kind"], command.json()["command"]["argv"]) == ("command", ["pg_dump", "shop"])
    schema = {"type": "object", "required": ["image"]}
    external = await http.post("/jobs", json={"name": "label", "kind": "external", "payload_schema": schema})
    assert (external.json()["kind"], external.json()["payload_schema"]) == ("external", schema)
    refused = await http.post("/runs", json={"job": "label"})
    assert (refused.status_code, refused.json()["code"]) == (422, "bad-payload")
    assert (await http.post("/jobs", json={"name": "what"})).status_code == 422
    assert (await http.post("/jobs", json={**PING, "argv": ["x"]})).status_code == 422


async def test_what_was_not_said_in_a_change_stays(http: httpx2.AsyncClient) -> None:
    options = {"only_workers": ["a"], "labels": ["gpu"], "expect": {"success_every": "25h"}, "priority": 5}
    made = await make(http, **options)
    patched = (await http.patch("/jobs/ping", json={"description": "of health"})).json()
    assert patched.pop("description") == "of health"
    ignored = ("version", "status", "description", "schedule", "run", "created", "updated_at")
    assert {k: v for k, v in patched.items() if k not in ignored} == {k: v for k, v in made.items() if k not in ignored}


async def test_a_masked_secret_does_not_become_the_secret(http: httpx2.AsyncClient) -> None:
    made = await make(http, headers={"Authorization": "Bearer x"}, secret="s", url="https://example.com/?key=1")
    for field in ("headers", "secret", "url"):
        refused = await http.patch("/jobs/ping", json={field: made["http"][field]})
        assert refused.status_code == 422, field
        assert refused.json()["pointer"].startswith(f"#/{field}")


async def test_a_job_may_come_with_its_schedule(http: httpx2.AsyncClient) -> None:
    made = await make(http, schedule={"cron": "0 3 * * *", "timezone": "Europe/Berlin"})
    assert (made["schedule"]["name"], made["schedule"]["job"]) == ("ping", "ping")
    again = await http.post("/jobs", json={**PING, "schedule": {"cron": "0 3 * * *", "timezone": "Europe/Berlin"}})
    assert (again.status_code, again.json()["schedule"]["id"]) == (200, made["schedule"]["id"])
    other = await http.post("/jobs", json={**PING, "schedule": {"every": "5m"}})
    assert (other.status_code, other.json()["code"]) == (409, "duplicate-schedule")
    assert (await http.get("/jobs/ping")).status_code == 200
    assert made["schedule"]["owner"] == "job:ping"


@pytest.mark.parametrize("how", ["/jobs/ping", "/jobs/ping?force=true"])
async def test_a_job_that_is_dropped_takes_its_own_schedule_along(http: httpx2.AsyncClient, how: str) -> None:
    """A repeated request creates both again: the job continues its versions, and its schedule is a new one."""
    words = {"interval_minutes": 30, "interval_type": "minutes", "schedule_enabled": True}
    first = await make(http, **words)
    assert (await http.delete(how)).status_code == 204
    assert (await http.get("/schedules")).json()["items"] == []
    again = await make(http, **words)
    assert (again["version"], again["schedule"]["enabled"]) == (2, True)
    assert again["schedule"]["id"] != first["schedule"]["id"]


async def test_a_job_of_which_another_schedule_was_made_is_in_use(http: httpx2.AsyncClient) -> None:
    await make(http, interval_minutes=30)
    other = {"name": "nightly", "job": "ping", "cron": "0 3 * * *"}
    assert (await http.post("/schedules", json=other)).status_code == 201
    assert (await http.delete("/jobs/ping")).json()["code"] == "job-in-use"
    assert [one["name"] for one in (await http.get("/schedules")).json()["items"]] == ["nightly", "ping"]
    assert (await http.delete("/jobs/ping?force=true")).status_code == 204
    (left,) = (await http.get("/schedules")).json()["items"]
    assert (left["name"], left["enabled"]) == ("nightly", False)
    enabled = await http.patch("/schedules/nightly", json={"enabled": True})
    assert (enabled.status_code, enabled.json()["code"]) == (404, "unknown-job")
    triggered = await http.post("/schedules/nightly/trigger")
    assert (triggered.status_code, triggered.json()["code"]) == (404, "unknown-job")


async def test_a_pause_does_not_outlive_its_job(http: httpx2.AsyncClient) -> None:
    await make(http, interval_minutes=30)
    assert (await http.post("/jobs/ping/pause")).status_code == 200
    assert (await http.delete("/jobs/ping")).status_code == 204
    again = await make(http, interval_minutes=30)
    assert (again["status"]["paused_at"], again["schedule"]["state"]) == (None, "active")


async def test_a_schedule_moved_to_another_job_does_not_go_with_its_first(http: httpx2.AsyncClient) -> None:
    await make(http, interval_minutes=30)
    assert (await http.patch("/schedules/ping", json={"job": "crawl", "payload": {"url": "x"}})).status_code == 200
    assert (await http.delete("/jobs/ping")).status_code == 204
    assert [one["job"] for one in (await http.get("/schedules")).json()["items"]] == ["crawl"]


async def test_what_cannot_be_made_leaves_no_job_behind(http: httpx2.AsyncClient) -> None:
    await make(http, name="pong", interval_minutes=30)
    taken = await http.post("/jobs", json={**PING, "schedule": {"name": "pong", "every": "5m"}})
    assert (taken.status_code, taken.json()["code"]) == (409, "duplicate-schedule")
    assert (await http.get("/jobs/ping")).status_code == 404


@pytest.mark.parametrize(
    ("interval", "rule"),
    [((30, "minutes"), "every 30 minutes"), ((6, "hours"), "every 6 hours"), ((1, "days"), "every 24 hours")],
)
async def test_intervals_may_be_said_in_other_words(
    http: httpx2.AsyncClient, interval: tuple[int, str], rule: str
) -> None:
    words = {"interval_minutes": interval[0], "interval_type": interval[1], "schedule_enabled": True}
    made = await make(http, **words, max_retries=3, retry_backoff_seconds=90, metadata={"category": "news"})
    assert made["schedule"]["rule"] == rule
    assert (made["retry"]["max_attempts"], made["retry"]["backoff"]["base"]) == (4, "1m30s")
    assert made["metadata"] == {"category": "news"}
    off = await make(http, name="off", interval_minutes=5, schedule_enabled=False)
    assert (off["schedule"]["enabled"], off["run"]) == (False, None)


async def test_without_an_interval_it_may_run_once_and_now(http: httpx2.AsyncClient) -> None:
    made = await make(http, schedule_enabled=False, payload={"a": 1})
    assert (made["schedule"], made["run"]["state"], made["run"]["payload"]) == (None, "queued", {"a": 1})
    again = await http.post("/jobs", json={**PING, "schedule_enabled": False, "payload": {"a": 1}})
    assert (again.status_code, again.json()["run"]["id"]) == (200, made["run"]["id"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"schedule": {"cron": "nonsense"}}, {"schedule": {"every": "5m"}, "interval_minutes": 5},
        {"schedule": {"every": "5m", "job": "crawl"}}, {"schedule_enabled": True}, {"interval_type": "hours"},
        {"interval_minutes": 0}, {"interval_minutes": 5, "interval_type": "weeks"}, {"schedule": {}},
        {"schedule": {"every": "5m", "payload": {"x": "{nothing.like.it}"}, "what": 1}},
        {"schedule": {"following": "nobody"}}, {"schedulable": False, "schedule": {"every": "5m"}},
        {"max_retries": 3, "max_attempts": 4}, {"retry_backoff_seconds": 60, "backoff": "60s"},
        {"payload_schema": {"type": "object", "required": ["a"]}, "schedule": {"every": "5m"}},
        {"payload_schema": {"type": "object", "required": ["a"]}, "schedule_enabled": False},
    ],
    ids=str,
)  # fmt: skip
async def test_what_cannot_be_scheduled_is_not_made(http: httpx2.AsyncClient, wrong: dict[str, Any]) -> None:
    """All or nothing, even where only the job itself shows that its schedule is invalid."""
    refused = await http.post("/jobs", json={**PING, **wrong})
    assert refused.status_code in (404, 409, 422), refused.text
    assert (await http.get("/jobs/ping")).status_code == 404
    assert (await http.get("/schedules")).json()["items"] == []


async def test_how_many_at_once_is_one_limit(http: httpx2.AsyncClient) -> None:
    """`max_concurrency` stays one limit, however it is written and changed; other limits stay."""
    await make(http, max_concurrency=2, limit=[{"max": 1, "by": ["scope"]}])
    for changes, left in (
        ({"max_concurrency": 5}, [(1, ["scope"]), (5, [])]),
        ({"priority": 1}, [(1, ["scope"]), (5, [])]),
        ({"max_concurrency": None}, [(1, ["scope"])]),
        ({"limit": [{"max": 7}]}, [(7, [])]),
        ({"max_concurrency": 3}, [(3, [])]),
        ({"limit": None, "max_concurrency": 4}, [(4, [])]),
    ):
        patched = await http.patch("/jobs/ping", json=changes)
        assert patched.status_code == 200, (changes, patched.text)
        limits = [(limit["max"], limit.get("by", [])) for limit in patched.json()["limits"]]
        assert (changes, limits) == (changes, left)


@pytest.mark.parametrize("how", ["", "?force=true"])
@pytest.mark.parametrize("headers", [{}, {"if-match": '"1"'}])
async def test_a_deleted_job_is_unknown(http: httpx2.AsyncClient, how: str, headers: dict[str, str]) -> None:
    await make(http)
    assert (await http.delete("/jobs/ping")).status_code == 204
    again = await http.delete(f"/jobs/ping{how}", headers=headers)
    assert (again.status_code, again.json()["code"]) == (404, "unknown-job")


async def test_a_job_that_is_put_says_where_it_is(http: httpx2.AsyncClient) -> None:
    put = await http.put("/jobs/ping", json={"url": PING["url"]})
    assert (put.status_code, put.headers["location"]) == (201, f"{API}/jobs/ping")


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_an_unknown_job_is_not_for_a_worker_to_declare(http: httpx2.AsyncClient, method: str) -> None:
    await make(http)
    body = {"timeout": "3s"} if method == "PATCH" else None
    hints = [(await http.request(method, f"/jobs/{name}", json=body)).json()["hint"] for name in ("pings", "zzzzzz")]
    assert hints == ["did you mean 'ping'?", "known: crawl, ping"]


async def test_a_job_in_code_is_suggested_before_it_is_stored(sqlite_url: str) -> None:
    app = Rota(sqlite_url)

    @app.job
    def crawl() -> None: ...

    client = await app.connect()
    for ask in (client.job, client.job_status, client.job_stats, client.pause_job, client.cancel_job):
        with pytest.raises(UnknownJob, match="crawl'\\?"):
            await ask("crawll")
    await app.aclose()


async def test_facts_are_read_after_the_job_is_written(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count all that waits: inside the transaction that writes, nobody else could write meanwhile."""
    app = Rota(sqlite_url)
    client = await app.connect()
    read_facts, fetch_written = jobs.facts, data_jobs._versions
    writers: list[Tx] = []
    readers: list[Tx] = []

    async def facts(tx: Tx, names: Sequence[str]) -> list[JobFacts]:
        readers.append(tx)
        return await read_facts(tx, names)

    async def versions(tx: Tx, name: str) -> list[data_jobs._Version]:
        writers.append(tx)
        return await fetch_written(tx, name)

    monkeypatch.setattr(jobs, "facts", facts)
    monkeypatch.setattr(data_jobs, "_versions", versions)
    await client.data_jobs.create("ping", "http", url=PING["url"])
    await client.data_jobs.update("ping", timeout="3s")
    assert len(readers) == 2
    assert not [tx for tx in readers if tx in writers]
    await app.aclose()
