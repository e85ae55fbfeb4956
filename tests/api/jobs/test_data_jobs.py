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


CHANGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"interval_minutes": 6, "interval_type": "hours"}, {"every": "6h", "cron": None}),
    ({"schedule_time": "0 3 * * *"}, {"every": None, "cron": "0 3 * * *"}),
    ({"cron_expr": "0 3 * * *", "overlap_action": "ALLOW"}, {"cron": "0 3 * * *", "overlap": "allow"}),
    ({"schedule": {"overlap": "allow"}}, {"every": "30m", "overlap": "allow"}),
    ({"schedule_enabled": False}, {"every": "30m", "enabled": False}),
    ({"schedule_enabled": False, "max_retries": 5}, {"every": "30m", "enabled": False}),
]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_words_of_its_schedule_change_the_schedule_of_a_job(http: httpx2.AsyncClient, method: str) -> None:
    for number, (words, definition) in enumerate(CHANGES):
        name = f"ping-{number}"
        made = await make(http, name=name, interval_minutes=30, timeout="3s")
        answer = await http.request(method, f"/jobs/{name}", json=words)
        assert (answer.status_code, answer.json()["timeout"]) == (200, "3s"), answer.text
        changed = (await http.get(f"/schedules/{name}")).json()
        assert changed["id"] == made["schedule"]["id"]
        told = {**changed["definition"], "enabled": changed["enabled"]}
        assert {key: told.get(key) for key in definition} == definition, words


async def test_a_whole_body_may_be_put_again_with_another_interval(http: httpx2.AsyncClient) -> None:
    body = {"source_name": "ping", "url": PING["url"], "interval_minutes": 30, "schedule_enabled": True}
    first = await http.put("/jobs/ping", json=body)
    assert (first.status_code, first.json()["schedule"]["owner"]) == (201, "job:ping")
    again = await http.put("/jobs/ping", json={**body, "interval_minutes": 60, "max_retries": 1})
    assert (again.status_code, again.json()["schedule"]["definition"]["every"]) == (200, "1h")
    assert (again.json()["schedule"]["id"], again.json()["retry"]["max_attempts"]) == (
        first.json()["schedule"]["id"],
        2,
    )
    renamed = await http.put("/jobs/ping", json={**body, "source_name": "pong"})
    assert (renamed.status_code, "does not change" in renamed.json()["detail"]) == (422, True)


async def test_a_job_and_its_schedule_change_together_or_not_at_all(http: httpx2.AsyncClient) -> None:
    await make(http, interval_minutes=30)
    for wrong in ({"interval_minutes": 0}, {"cron_expr": "nonsense"}, {"schedule": {"bogus": 1}}):
        refused = await http.patch("/jobs/ping", json={"timeout": "3s", **wrong})
        assert refused.status_code == 422, refused.text
    refused = await http.patch("/jobs/ping", json={"interval_minutes": 5}, headers={"If-Match": '"7"'})
    assert refused.json()["code"] == "changed-meanwhile"
    assert (await http.get("/jobs/ping")).json()["version"] == 1
    assert (await http.get("/schedules/ping")).json()["definition"]["every"] == "30m"


async def test_a_job_without_a_schedule_gets_one_by_a_change(http: httpx2.AsyncClient) -> None:
    await make(http)
    assert (await http.patch("/jobs/ping", json={"interval_minutes": 5})).status_code == 200
    assert (await http.get("/schedules/ping")).json()["owner"] == "job:ping"
    await make(http, name="other")
    taken = {"name": "other", "job": "ping", "every": "1h"}
    assert (await http.post("/schedules", json=taken)).status_code == 201
    refused = await http.patch("/jobs/other", json={"interval_minutes": 5})
    assert (refused.status_code, refused.json()["code"]) == (409, "duplicate-schedule")
    needless = await http.patch("/jobs/other", json={"schedule_enabled": False})
    assert needless.status_code == 422, "there is nothing to switch off"


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


async def test_intervals_may_be_said_in_other_words(http: httpx2.AsyncClient) -> None:
    rules = {(30, "minutes"): "every 30 minutes", (6, "hours"): "every 6 hours", (1, "days"): "every 24 hours"}
    for (number, kind), rule in rules.items():
        words = {"interval_minutes": number, "interval_type": kind, "schedule_enabled": True, "name": f"ping-{kind}"}
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


UNSCHEDULED: list[dict[str, Any]] = [
    {"schedule": {"cron": "nonsense"}}, {"schedule": {"every": "5m"}, "interval_minutes": 5},
    {"schedule": {"every": "5m", "job": "crawl"}}, {"schedule_enabled": True}, {"interval_type": "hours"},
    {"interval_minutes": 0}, {"interval_minutes": 5, "interval_type": "weeks"}, {"schedule": {}},
    {"schedule": {"every": "5m", "payload": {"x": "{nothing.like.it}"}, "what": 1}},
    {"schedule": {"following": "nobody"}}, {"schedulable": False, "schedule": {"every": "5m"}},
    {"max_retries": 3, "max_attempts": 4}, {"retry_backoff_seconds": 60, "backoff": "60s"},
    {"payload_schema": {"type": "object", "required": ["a"]}, "schedule": {"every": "5m"}},
    {"payload_schema": {"type": "object", "required": ["a"]}, "schedule_enabled": False},
]  # fmt: skip


async def test_what_cannot_be_scheduled_is_not_made(http: httpx2.AsyncClient) -> None:
    """All or nothing, even where only the job itself shows that its schedule is invalid."""
    for wrong in UNSCHEDULED:
        refused = await http.post("/jobs", json={**PING, **wrong})
        assert refused.status_code in (404, 409, 422), (wrong, refused.text)
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


async def test_a_deleted_job_is_unknown(http: httpx2.AsyncClient) -> None:
    await make(http)
    assert (await http.delete("/jobs/ping")).status_code == 204
    for how in ("", "?force=true"):
        for headers in ({}, {"if-match": '"1"'}):
            again = await http.delete(f"/jobs/ping{how}", headers=headers)
            assert (again.status_code, again.json()["code"]) == (404, "unknown-job")


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
