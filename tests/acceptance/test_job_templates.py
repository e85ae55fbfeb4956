"""A job system with templates, runs and schedules: its demo template, cancelled from each state, and external workers.

Names of tests are its sentences.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import cron
from rota.client.client import Order
from rota.core.external.external import Assignment
from rota.core.progress.steps import StepState
from rota.core.states import RunState
from rota.errors import BadPayload, LeaseLost, LimitReached, RunIsFinal
from rota.testing import Harness
from tests.acceptance.api import Api
from tests.support.wait import until
from tests.system.site import Site

TEMPLATE: dict[str, Any] = {
    "description": "展示 job template、進度、取消、重跑與排程能力",
    "payload_schema": {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]},
    "limit": {"max": 1, "by": ["scope", "target"], "when_full": "reject"},
    "timeout": "600s",
    "cancel_grace": "30s",
    "max_attempts": 2,
    "backoff": ["30s", "2m"],
    "steps": [
        {"id": "prepare", "name": "準備資料", "timeout": "60s"},
        {"id": "execute", "name": "執行任務", "timeout": "300s"},
        {"id": "finalize", "name": "整理結果", "timeout": "30s", "cancelable": False},
    ],
}
USER = {"scope": ("user", "user_123")}


async def create(client: Any, **changes: Any) -> None:
    await client.data_jobs.create("demo_long_task", "external", **{**TEMPLATE, **changes})


async def publish(client: Any, **options: Any) -> str:
    order = Order("demo_long_task", {"target": "t"}, {**USER, **options})
    return str((await client.enqueue(order)).id)


async def taken(client: Any) -> Assignment:
    (held,) = await client.external.claim("worker-1")
    return held  # type: ignore[no-any-return]


async def test_a_template_says_how_this_kind_of_job_is_done(harness: Harness) -> None:
    await create(harness.client)
    job = await harness.client.job("demo_long_task")
    assert [(step.id, step.name, step.cancelable) for step in job.steps] == [
        ("prepare", "準備資料", True), ("execute", "執行任務", True), ("finalize", "整理結果", False),
    ]  # fmt: skip
    assert (job.version, job.enabled, job.repeatable, job.schedulable) == (1, True, True, True)
    with pytest.raises(BadPayload, match="target"):
        await harness.client.enqueue(Order("demo_long_task", {}))


async def test_a_run_keeps_payload_state_progress_result_and_history(harness: Harness) -> None:
    await create(harness.client)
    run_id = await publish(harness.client)
    held = await taken(harness.client)
    external, run = harness.client.external, (held.run_id, held.fence)
    for step in ("prepare", "execute", "finalize"):
        await external.step(*run, step, "running")
        await external.step(*run, step, "succeeded", result={"step": step})
    await external.progress(*run, 100, "完成")
    await external.complete(*run, {"done": True})
    done = await harness.run(run_id)
    assert (done.state, done.result, done.job_version, done.attempt) == (RunState.SUCCEEDED, {"done": True}, 1, 1)
    assert [step.state for step in await harness.client.steps(run_id)] == [StepState.SUCCEEDED] * 3
    assert [event.type for event in await harness.client.events(run_id)][-1] == "succeeded"


async def test_reject_same_scope(harness: Harness) -> None:
    await create(harness.client)
    first = await publish(harness.client)
    with pytest.raises(LimitReached) as caught:
        await publish(harness.client)
    assert (caught.value.scope, caught.value.holder) == ("user/user_123", first)
    await publish(harness.client, scope=("user", "user_456"))


@pytest.mark.parametrize("options", [{}, {"delay": "1h"}], ids=["queued", "pending"])
async def test_pending_and_queued_become_cancelled_at_once(harness: Harness, options: dict[str, Any]) -> None:
    await create(harness.client)
    run_id = await publish(harness.client, **options)
    assert (await harness.client.cancel(run_id, reason="not needed")).state is RunState.CANCELLED
    assert await harness.client.external.claim("worker-1") == []
    assert (await harness.run(run_id)).reason == "not needed"


async def test_running_becomes_cancel_requested_and_the_worker_acknowledges_it(harness: Harness) -> None:
    await create(harness.client)
    run_id = await publish(harness.client)
    held = await taken(harness.client)
    await harness.client.external.step(held.run_id, held.fence, "execute", "running")
    run = await harness.client.cancel(run_id, reason="enough")
    assert (run.state, run.reason) == (RunState.CANCELLING, "enough")
    assert (await harness.client.external.heartbeat(held.run_id, held.fence)).cancelling
    assert await harness.client.external.cancelled(held.run_id, held.fence) is RunState.CANCELLED
    states = {step.id: step.state for step in await harness.client.steps(run_id)}
    assert states["execute"] is StepState.CANCELLED


async def test_waiting_for_a_worker_becomes_cancel_requested(harness: Harness) -> None:
    await harness.declare("approve")
    run_id = (await harness.enqueue("approve")).id
    worker = await harness.worker().claim()
    fence = worker.fence()
    await worker.wait_for_external("1h")
    assert await harness.state(run_id) is RunState.WAITING
    assert (await harness.client.cancel(run_id)).state is RunState.CANCELLING
    assert (await harness.client.external.heartbeat(run_id, fence)).cancelling
    assert await harness.client.external.cancelled(run_id, fence) is RunState.CANCELLED


@pytest.mark.parametrize("end", ["succeeded", "failed", "expired"])
async def test_final_states_cannot_be_cancelled(harness: Harness, end: str) -> None:
    await create(harness.client, max_attempts=1)
    run_id = await publish(harness.client)
    held = await taken(harness.client)
    match end:
        case "succeeded":
            await harness.client.external.complete(held.run_id, held.fence)
        case "failed":
            await harness.client.external.fail(held.run_id, held.fence, "no way")
        case _:
            harness.clock.advance(harness.lease + timedelta(seconds=1))
            await harness.reaper.step()
    assert (await harness.run(run_id)).state.value == end
    with pytest.raises(RunIsFinal):
        await harness.client.cancel(run_id)


async def test_a_cancel_that_nobody_acknowledges_within_its_grace_is_ended_by_the_reaper(harness: Harness) -> None:
    await create(harness.client, cancel_grace="10s")
    run_id = await publish(harness.client)
    held = await taken(harness.client)
    await harness.client.cancel(run_id)
    for _ in range(11):
        harness.clock.advance(timedelta(seconds=1))
        await harness.client.external.heartbeat(held.run_id, held.fence)
    harness.clock.advance(timedelta(seconds=1))
    await harness.reaper.step()
    assert await harness.state(run_id) is RunState.CANCELLED
    with pytest.raises(LeaseLost):
        await harness.client.external.complete(held.run_id, held.fence)


async def test_only_the_worker_that_holds_the_lock_may_update_the_run(harness: Harness) -> None:
    await create(harness.client, backoff=["0s"])
    run_id = await publish(harness.client)
    first = await taken(harness.client)
    harness.clock.advance(harness.lease + timedelta(seconds=1))
    await harness.reaper.step()
    second = await taken(harness.client)
    assert (second.run_id, second.attempt) == (run_id, 2)
    for late in (harness.client.external.complete, harness.client.external.heartbeat):
        with pytest.raises(LeaseLost):
            await late(first.run_id, first.fence)
    assert await harness.client.external.complete(second.run_id, second.fence) is RunState.SUCCEEDED


async def test_a_schedule_says_when_a_run_is_created(harness: Harness) -> None:
    await create(harness.client)
    nine = cron("0 9 * * *", "Asia/Taipei")
    payload = {"target": "{plan_time}"}
    await harness.client.schedules.create("daily", "demo_long_task", nine, payload=payload, scopes=[USER["scope"]])
    next_at = (await harness.client.schedules.get("daily")).next_plan
    assert next_at is not None
    assert (next_at.hour, next_at.minute) == (1, 0), "nine o'clock in Taipei is one o'clock UTC"
    harness.clock.advance(next_at - harness.clock.now())
    await harness.planner.step()
    (run,) = await harness.client.list()
    assert (run.plan_time, run.scope.kind, run.scope.id) == (next_at, "user", "user_123")
    await harness.client.schedules.disable("daily")
    harness.clock.advance(timedelta(days=1))
    await harness.planner.step()
    assert len(await harness.client.list()) == 1


async def test_an_external_worker_does_the_steps_and_its_timeouts_are_kept(site: Site) -> None:
    """In real processes: the reaper of a worker takes a run away whose heartbeats would never end."""
    site.worker()
    client = site.client
    await create(client, timeout="1s", max_attempts=1, limit=None)
    run_id = await publish(client)
    held = await taken(client)

    async def is_taken_away() -> bool:
        try:
            await client.external.heartbeat(held.run_id, held.fence)
        except LeaseLost:
            return True
        return False

    await until(is_taken_away)
    late = await site.final(run_id)
    assert late.error is not None
    assert (late.state, late.error.message) == (RunState.TIMED_OUT, "longer than 1s")
    with pytest.raises(LeaseLost):
        await client.external.complete(held.run_id, held.fence)


async def test_running_work_of_a_real_worker_stops_cooperatively(site: Site) -> None:
    site.worker()
    run_id = await site.enqueue("nap", seconds=[3_600.0])
    await site.begun(run_id)
    assert (await site.client.cancel(run_id, reason="enough")).state is RunState.CANCELLING
    done = await site.final(run_id)
    assert (done.state, done.reason) == (RunState.CANCELLED, "enough")


STORED: dict[str, Any] = {
    "_id": "...", "type": "demo_long_task", "version": 1, "name": "示範長任務",
    "description": "展示 job template、進度、取消、重跑與排程能力",
    "enabled": True, "repeatable": True, "concurrencyPolicy": "reject_same_scope", "dedupeKeys": ["scope_id", "target"],
    "timeoutSeconds": 600, "cancelPolicy": {"supported": True, "mode": "cooperative", "graceSeconds": 30},
    "retryPolicy": {"maxAttempts": 2, "backoffSeconds": [30, 120]},
    "steps": [
        {"id": "prepare", "name": "準備資料", "workerType": "go", "timeoutSeconds": 60, "cancelable": True},
        {"id": "execute", "name": "執行任務", "workerType": "go", "timeoutSeconds": 300, "cancelable": True},
        {"id": "finalize", "name": "整理結果", "workerType": "go", "timeoutSeconds": 30, "cancelable": False},
    ],
    "createAt": 0, "updateAt": 0,
}  # fmt: skip
STORED_SCHEDULE: dict[str, Any] = {
    "_id": "...", "templateType": "demo_long_task", "scope": "user", "scopeId": "user_123", "enabled": True,
    "cron": "0 9 * * *", "timezone": "Asia/Taipei", "payloadTemplate": {}, "lastRunAt": None, "nextRunAt": 0,
    "createAt": 0, "updateAt": 0,
}  # fmt: skip


def test_its_own_documents_are_taken_by_a_real_server_and_cancelled_from_each_state(api: Api) -> None:
    """Template, schedule, runs and an external worker, by HTTP only."""
    made = api.post("/jobs", STORED, 201)
    assert (made["name"], made["kind"], made["timeout"], made["cancel"]["grace"]) == (
        "demo_long_task", "external", "10m", "30s",
    )  # fmt: skip
    assert [step["id"] for step in made["steps"]] == ["prepare", "execute", "finalize"]
    schedule = api.post("/schedules", STORED_SCHEDULE, 201)
    assert (schedule["job"], schedule["definition"]["cron"]) == ("demo_long_task", "0 9 * * *")
    assert datetime.fromisoformat(schedule["next_plan"]).astimezone(UTC).hour == 1

    def run(scope: str, **options: Any) -> str:
        body = {
            "job": "demo_long_task",
            "payload": {"target": scope},
            "scope": {"kind": "user", "id": scope},
            **options,
        }
        return str(api.post("/runs", body, 201)["id"])

    def claimed() -> dict[str, Any]:
        (held,) = api.post("/worker/claim", {"worker": "go@1", "jobs": ["demo_long_task"], "max": 1})["runs"]
        return dict(held)

    for options in ({"delay": "1h"}, {}):
        pending = run("a", **options)
        assert api.post(f"/runs/{pending}/cancel")["state"] == "cancelled"
    running = run("b")
    assert api.ask("POST", "/runs", {"job": "demo_long_task", "scope": {"kind": "user", "id": "b"}}).status_code == 409
    held = claimed()
    api.post(f"/worker/runs/{running}/step", {"fence": held["fence"], "id": "prepare", "state": "running"})
    report = {"fence": held["fence"], "percentage": 20, "summary": "等待 worker 執行"}
    api.post(f"/worker/runs/{running}/progress", report)
    progress = api.get(f"/runs/{running}/progress")
    assert (progress["percentage"], progress["summary"]) == (20, "等待 worker 執行")
    assert [(step["id"], step["state"]) for step in progress["steps"]][:1] == [("prepare", "running")]
    assert api.post(f"/runs/{running}/cancel", {"reason": "enough"})["state"] == "cancelling"
    assert api.post(f"/worker/runs/{running}/heartbeat", {"fence": held["fence"]})["cancelling"] is True
    assert api.post(f"/worker/runs/{running}/cancelled", {"fence": held["fence"]})["state"] == "cancelled"
    steps = api.get(f"/runs/{running}/progress")["steps"]
    assert {step["id"]: step["state"] for step in steps}["prepare"] == "cancelled"
    changes = [(event["from"], event["to"]) for event in api.get(f"/runs/{running}/events")["items"] if event["to"]]
    assert changes[-2:] == [("running", "cancelling"), ("cancelling", "cancelled")]
    done = run("c")
    held = claimed()
    assert api.post(f"/worker/runs/{done}/complete", {"fence": held["fence"], "result": 1})["state"] == "succeeded"
    for final in (running, done):
        late = api.ask("POST", f"/worker/runs/{final}/heartbeat", {"fence": held["fence"]})
        assert late.status_code == 409, "only the holder of the lock may write"
    refused = api.ask("POST", f"/runs/{done}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "run-is-final")
