"""The requests of an interval scheduler's API chapter, as its document writes them, to a real server.

A job is named by its `source_name` where the document says `:id`. docs/coming-from/vocabularies.md maps the words of
the answers: `status` is `state`, `next_run_at` is `next_at`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.processes.rota_process import Processes
from tests.support.servers.ports import free_port
from tests.support.wait import PATIENCE, wait_for

INTERVAL_BASED: dict[str, Any] = {
    "source_id": "news-site",
    "source_name": "example.com",
    "url": "https://example.com",
    "interval_minutes": 30,
    "interval_type": "minutes",
    "schedule_enabled": True,
    "max_retries": 3,
    "retry_backoff_seconds": 60,
    "metadata": {"category": "news", "priority": "high"},
}
RUN_ONCE: dict[str, Any] = {
    "source_id": "news-site",
    "source_name": "example.com",
    "url": "https://example.com",
    "schedule_enabled": False,
}
BY_CURL: dict[str, Any] = {
    "source_name": "example.com",
    "url": "https://example.com",
    "interval_minutes": 30,
    "interval_type": "minutes",
    "schedule_enabled": True,
}
ADJUSTED = {"max_retries": 5, "retry_backoff_seconds": 120}
JOB = "/jobs/example.com"


class Api:
    """The API of a server, whose answers are JSON."""

    def __init__(self, address: str) -> None:
        self._address = f"{address}/api/v1"

    def ask(self, method: str, path: str, body: object = None) -> httpx2.Response:
        return httpx2.request(method, f"{self._address}{path}", json=body, timeout=PATIENCE)

    def get(self, path: str) -> Any:
        return self.ask("GET", path).json()

    def post(self, path: str, body: object = None, status: int = 200) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status_code == status, answer.text
        return answer.json()


@pytest.fixture
def api(database_url: str, tmp_path: Path) -> Iterator[Api]:
    port = free_port()
    with Processes(tmp_path) as processes:
        environment = {"ROTA_DATABASE_URL": database_url, "ROTA_POLL": "0.2s"}
        server = processes.rota("server", "--port", str(port), environment=environment)
        api = Api(f"http://127.0.0.1:{port}")

        def answers() -> bool:
            assert server.exit_code is None, server.log
            try:
                return api.ask("GET", "/jobs").status_code == 200
            except httpx2.HTTPError:
                return False

        wait_for(answers)
        yield api


def claimed(api: Api) -> dict[str, Any]:
    """Claim the run of the external job `crawl`, as a crawler that is not rota's does."""
    runs: list[dict[str, Any]] = []

    def found() -> bool:
        runs.extend(api.post("/worker/claim", {"worker": "crawler@1", "jobs": ["crawl"], "max": 1})["runs"])
        return bool(runs)

    wait_for(found)
    return runs[0]


def test_create_job_interval_based(api: Api) -> None:
    made = api.post("/jobs", INTERVAL_BASED, 201)
    assert (made["name"], made["http"]["url"], made["status"]["state"]) == (
        "example.com", "https://example.com", "scheduled",
    )  # fmt: skip
    assert made["retry"]["max_attempts"] == 4
    assert (made["retry"]["backoff"]["base"], made["retry"]["backoff"]["cap"]) == ("1m", "1h")
    assert made["metadata"] == {"source_id": "news-site", "category": "news", "priority": "high"}
    assert (made["schedule"]["definition"]["every"], made["schedule"]["enabled"]) == ("30m", True)
    assert made["created_at"] == made["updated_at"]
    next_run = datetime.fromisoformat(made["status"]["next_at"])
    assert 0 < (next_run - datetime.now(UTC)).total_seconds() <= 30 * 60


@pytest.mark.parametrize(
    ("words", "every"),
    [
        ({"interval_minutes": 30, "interval_type": "minutes"}, "30m"),
        ({"interval_minutes": 6, "interval_type": "hours"}, "6h"),
        ({"interval_minutes": 1, "interval_type": "days"}, "1d"),
    ],
)
def test_user_friendly_intervals(api: Api, words: dict[str, Any], every: str) -> None:
    made = api.post("/jobs", {**BY_CURL, **words}, 201)
    assert made["schedule"]["definition"]["every"] == every


def test_jobs_can_use_either_interval_minutes_or_schedule_time(api: Api) -> None:
    cron = {"source_name": "by-cron", "url": "https://example.com", "schedule_time": "0 */6 * * *"}
    assert api.post("/jobs", cron, 201)["schedule"]["definition"]["cron"] == "0 */6 * * *"
    both = {**cron, "source_name": "by-both", "interval_minutes": 30}
    assert api.post("/jobs", both, 201)["schedule"]["definition"]["every"] == "30m"


def test_create_immediate_job_run_once(api: Api) -> None:
    made = api.post("/jobs", RUN_ONCE, 201)
    assert (made["schedule"], made["run"]["job"]) == (None, "example.com")
    assert made["run"]["state"] in ("queued", "running", "succeeded", "failed")


def test_pause_and_resume_job(api: Api) -> None:
    api.post("/jobs", BY_CURL, 201)
    paused = api.post(f"{JOB}/pause")
    assert (paused["state"], paused["next_at"]) == ("paused", None)
    assert paused["paused_at"] is not None
    resumed = api.post(f"{JOB}/resume")
    assert (resumed["state"], resumed["paused_at"]) == ("scheduled", None)
    assert datetime.fromisoformat(resumed["next_at"]) > datetime.now(UTC), "recalculated"


@pytest.mark.parametrize("state", ["scheduled", "paused"])
def test_cancel_job(api: Api, state: str) -> None:
    api.post("/jobs", BY_CURL, 201)
    if state == "paused":
        api.post(f"{JOB}/pause")
    cancelled = api.post(f"{JOB}/cancel")["status"]
    assert (cancelled["state"], cancelled["cancelled_at"] is not None) == ("cancelled", True)
    assert api.get(f"{JOB}")["status"]["state"] == "cancelled"
    for verb in ("cancel", "pause"):
        refused = api.post(f"{JOB}/{verb}", status=409)
        assert (refused["code"], "resume" in refused["hint"]) == ("job-state", True), "terminal: invalid transitions"
    assert api.post(f"{JOB}/resume")["state"] == "scheduled"


def test_cancel_running_job_mid_execution_and_retry(api: Api) -> None:
    api.post("/jobs", {"name": "crawl", "kind": "external", **ADJUSTED}, 201)
    assert api.post("/jobs/crawl/cancel", status=409)["code"] == "job-state", "nothing of it runs"
    api.post("/runs", {"job": "crawl"}, 201)
    run = claimed(api)
    assert api.get("/jobs/crawl")["status"]["state"] == "running"
    assert api.post("/jobs/crawl/cancel")["cancelled"] == 1
    api.post(f"/worker/runs/{run['id']}/cancelled", {"fence": run["fence"]})
    (execution,) = api.get("/jobs/crawl/executions")["executions"]
    assert (execution["status"], execution["completed_at"] is not None) == ("cancelled", True)
    api.post("/jobs/crawl/resume")
    again = api.post("/jobs/crawl/retry", status=201)
    assert (again["attempt"], again["retry_of"]) == (0, run["id"]), "its retry counter begins anew"
    assert api.get("/jobs/crawl")["status"]["state"] == "scheduled"


def test_execution_history_and_statistics(api: Api) -> None:
    api.post("/jobs", {"name": "crawl", "kind": "external", "max_retries": 0}, 201)
    for number in range(4):
        api.post("/runs", {"job": "crawl"}, 201)
        run = claimed(api)
        if number == 2:
            api.post(f"/worker/runs/{run['id']}/fail", {"fence": run["fence"], "error": "connection timeout"})
        else:
            api.post(f"/worker/runs/{run['id']}/complete", {"fence": run["fence"], "result": None})
    page = api.get("/jobs/crawl/executions?limit=50&offset=0")
    assert (page["total"], page["limit"], page["offset"]) == (4, 50, 0)
    executions = page["executions"]
    assert [execution["execution_number"] for execution in executions] == [4, 3, 2, 1]
    assert [execution["status"] for execution in executions] == ["completed", "failed", "completed", "completed"]
    assert {execution["retry_attempt"] for execution in executions} == {0}
    assert executions[1]["error_message"] == "connection timeout"
    assert all(execution["duration_ms"] >= 0 for execution in executions)
    second = api.get("/jobs/crawl/executions?limit=2&offset=1")
    assert (second["executions"], second["total"]) == (executions[1:3], 4)
    for execution in executions:
        detail = api.get(f"/executions/{execution['id']}")
        assert detail == execution
        assert {"cpu_time_ms", "memory_peak_mb", "metadata"} <= {*detail}
    stats = api.get("/jobs/crawl/stats")
    assert (stats["total"], stats["succeeded"], stats["failed"], stats["success_rate"]) == (4, 3, 1, 0.75)
    assert (stats["average_duration_ms"] >= 0, stats["last_execution_at"] is not None) == (True, True)
    metrics = api.get("/scheduler/metrics")
    assert {*metrics} == {"jobs", "executions", "last_check_at", "last_metrics_update", "stale_locks_cleared"}
    assert {"scheduled", "running", "completed", "failed", "cancelled"} <= {*metrics["jobs"]}
    assert (metrics["executions"]["total"], metrics["executions"]["success_rate"]) == (4, 0.75)
    assert metrics["stale_locks_cleared"] == 0


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_adjust_retry_settings(api: Api, method: str) -> None:
    api.post("/jobs", INTERVAL_BASED, 201)
    answer = api.ask(method, JOB, ADJUSTED)
    assert answer.status_code == 200, answer.text
    changed = api.get(JOB)
    assert (changed["retry"]["max_attempts"], changed["retry"]["backoff"]["base"]) == (6, "2m")
    assert (changed["http"]["url"], changed["metadata"]["category"]) == ("https://example.com", "news"), (
        "all else stays"
    )
    assert changed["updated_at"] > changed["created_at"]
    assert api.get("/schedules/example.com")["definition"]["every"] == "30m"


def test_words_that_rota_has_nothing_for_have_a_hint(api: Api) -> None:
    for word in ("lock_token", "next_run_at", "is_paused", "current_retry_count"):
        answer = api.ask("POST", "/jobs", {**BY_CURL, word: 1})
        assert (answer.status_code, bool(answer.json()["hint"])) == (422, True), answer.text
    assert api.get("/jobs")["items"] == []


def test_delete_takes_the_schedule_along(api: Api) -> None:
    api.post("/jobs", BY_CURL, 201)
    assert api.ask("DELETE", JOB).status_code == 204
    assert api.get("/schedules")["items"] == []
    assert api.ask("GET", JOB).status_code == 404
