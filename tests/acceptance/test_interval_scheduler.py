"""The requests of an interval scheduler's API chapter, as its document writes them, to a real server.

A job is named by its `source_name` where the document says `:id`. docs/coming-from/vocabularies.md maps the words of
the answers: `status` is `state`, `next_run_at` is `next_at`.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.acceptance.api import Api
from tests.support.wait import wait_for

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


def test_retry_failed_job_resets_it_and_a_recurring_job_is_scheduled_again(api: Api) -> None:
    """Its states as they change: scheduled, running, failed, and after the retry completed."""
    api.post("/jobs", {"name": "crawl", "kind": "external", "max_retries": 0}, 201)
    states = [api.get("/jobs/crawl")["status"]["state"]]
    api.post("/runs", {"job": "crawl"}, 201)
    run = claimed(api)
    states.append(api.get("/jobs/crawl")["status"]["state"])
    api.post(f"/worker/runs/{run['id']}/fail", {"fence": run["fence"], "error": "connection timeout"})
    states.append(api.get("/jobs/crawl")["status"]["state"])
    again = api.post("/jobs/crawl/retry", status=201)
    states.append(api.get("/jobs/crawl")["status"]["state"])
    run = claimed(api)
    assert (run["id"], run["attempt"]) == (again["id"], 1), "its retry counter is reset"
    api.post(f"/worker/runs/{run['id']}/complete", {"fence": run["fence"], "result": None})
    states.append(api.get("/jobs/crawl")["status"]["state"])
    assert states == ["pending", "running", "failed", "scheduled", "completed"]
    assert [one["status"] for one in api.get("/jobs/crawl/executions")["executions"]] == ["completed", "failed"]
    assert api.ask("PUT", "/jobs/crawl", {"interval_minutes": 30, "interval_type": "minutes"}).status_code == 200
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


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_another_interval_is_put_where_the_job_is_changed(api: Api, method: str) -> None:
    api.post("/jobs", INTERVAL_BASED, 201)
    for body in ({"interval_minutes": 6, "interval_type": "hours"}, {**INTERVAL_BASED, "interval_minutes": 15}):
        answer = api.ask(method, JOB, body)
        assert answer.status_code == 200, answer.text
    assert api.get("/schedules/example.com")["definition"]["every"] == "15m"
    assert api.ask(method, JOB, {"schedule_enabled": False}).status_code == 200
    assert api.get("/schedules/example.com")["enabled"] is False


def test_a_job_that_runs_once_is_executed_by_a_worker_without_code(api: Api) -> None:
    """Its url is the server's own, which answers."""
    worker = api.worker()
    made = api.post("/jobs", {**RUN_ONCE, "url": api.healthy}, 201)
    wait_for(lambda: api.get(f"/runs/{made['run']['id']}")["state"] == "succeeded")
    (execution,) = api.get(f"{JOB}/executions?limit=50&offset=0")["executions"]
    assert (execution["status"], execution["execution_number"], execution["retry_attempt"]) == ("completed", 1, 0)
    assert api.get(JOB)["status"]["state"] == "completed"
    assert worker.exit_code is None


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
