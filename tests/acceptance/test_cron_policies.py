"""A cron daemon with policies: its own example in its own words, and its table of cases.

Names of tests are its sentences.
"""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import pytest

from rota.core.runs.run import Run
from rota.core.states import RunState
from rota.errors import Invalid
from rota.testing import Harness
from tests.acceptance.api import Api
from tests.support.wait import until, wait_for
from tests.system.site import Site

DEMO: dict[str, Any] = {
    "name": "demo-task",
    "cron_expr": "*/5 * * * * *",
    "max_concurrency": 1,
    "concurrency_policy": "SKIP",
    "overlap_action": "CANCEL_PREV",
    "failure_action": "RETRY",
    "misfire_policy": "CATCH_UP_LIMITED",
    "catchup_limit": 3,
    "timeout_seconds": 8,
}
EACH_SECOND = {**DEMO, "cron_expr": "* * * * * *", "overlap_action": "ALLOW", "concurrency_policy": "QUEUE"}
FIVE = timedelta(seconds=5)


async def create(harness: Harness, document: dict[str, Any], **changes: Any) -> None:
    """Create the task without those of its words that are changed to None."""
    await harness.declare("demo", max_attempts=3)
    words = {key: value for key, value in {**document, **changes, "job": "demo"}.items() if value is not None}
    await harness.client.schedules.apply_documents([words], "acceptance")


async def pass_time(harness: Harness, seconds: int = 5) -> None:
    harness.clock.advance(timedelta(seconds=seconds))
    await harness.planner.step()


async def runs(harness: Harness) -> list[Run]:
    """Return the runs of the task, oldest plan time first."""
    found = await harness.client.list(limit=100)
    return sorted(found, key=lambda run: (run.plan_time is None, run.plan_time))


async def states(harness: Harness) -> list[str]:
    return [run.state.value for run in await runs(harness)]


async def test_if_the_previous_round_still_runs_it_is_cancelled_and_the_new_one_starts_at_once(site: Site) -> None:
    """In real processes, with all its words: a coroutine that would run for ever."""
    document = {**DEMO, "job": "nap", "payload": {"seconds": [3_600.0]}}
    await site.client.schedules.apply_documents([document], "acceptance")
    site.worker()
    await until(lambda: len(site.ledger.entries("begin")) >= 2)
    first, second = site.ledger.entries("begin")[:2]
    assert first.run_id != second.run_id
    (stop,) = site.ledger.entries("stop", first.run_id)
    assert stop.at <= second.at, "never two at once"
    cancelled = await site.final(first.run_id)
    assert (cancelled.state, cancelled.cancelled_by) == (RunState.CANCELLED, "policy:overlap")
    await site.client.schedules.delete("demo-task")


async def test_if_the_previous_round_failed_the_attempt_grows(harness: Harness) -> None:
    await create(harness, DEMO)
    for _ in range(4):
        await pass_time(harness)
        await (await harness.worker().claim()).fail()
    assert [(run.state.value, run.attempt) for run in await runs(harness)] == [
        ("failed", 1), ("failed", 2), ("failed", 3), ("failed", 1),
    ]  # fmt: skip


async def test_if_a_late_scan_missed_several_the_last_three_are_made_up_for(harness: Harness) -> None:
    await create(harness, DEMO, overlap_action="ALLOW", concurrency_policy="QUEUE")
    await pass_time(harness, 60)
    now = harness.clock.now()
    assert [run.plan_time for run in await runs(harness)] == [now - 2 * FIVE, now - FIVE, now]


async def test_beyond_the_limit_and_no_overlap_it_is_skipped(harness: Harness) -> None:
    """A run that was triggered by hand takes the only slot; overlap is allowed, so the limit decides."""
    await create(harness, DEMO, overlap_action="ALLOW")
    await pass_time(harness)
    await harness.worker().claim()
    await pass_time(harness)
    assert await states(harness) == ["running", "skipped"]
    assert "full" in ((await runs(harness))[1].reason or "")


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ({"misfire_policy": "FIRE_NOW", "catchup_limit": None}, [1, 2, 3, 4, 5]),
        ({"misfire_policy": "CATCH_UP_LIMITED", "catchup_limit": 2}, [4, 5]),
        ({"misfire_policy": "SKIP", "catchup_limit": None}, [5]),
    ],
)
async def test_the_scan_at_five_seconds_after_the_last(
    harness: Harness, words: dict[str, Any], seconds: list[int]
) -> None:
    await create(harness, EACH_SECOND, **words)
    begin = harness.clock.now()
    await pass_time(harness, 5)
    made = [run.plan_time - begin for run in await runs(harness) if run.plan_time]
    assert made == [timedelta(seconds=second) for second in seconds]


@pytest.mark.parametrize(
    ("overlap", "concurrency", "fate"),
    [
        ("ALLOW", "QUEUE", "queued"),
        ("ALLOW", "SKIP", "skipped"),
        ("SKIP", "QUEUE", "skipped"),
        ("PARALLEL", "SKIP", "running"),
        ("PARALLEL", "QUEUE", "running"),
    ],
)
async def test_overlap_and_concurrency_together(harness: Harness, overlap: str, concurrency: str, fate: str) -> None:
    """PARALLEL overrides the limit while the previous round runs."""
    await create(harness, DEMO, overlap_action=overlap, concurrency_policy=concurrency)
    await pass_time(harness)
    worker = await harness.worker().claim()
    await pass_time(harness)
    await worker.claim()
    assert await states(harness) == ["running", fate]


@pytest.mark.parametrize(
    ("overlap", "fates"),
    [
        ("ALLOW", ["queued"] * 5),
        ("SKIP", ["queued", *["skipped"] * 4]),
        ("CANCEL_PREV", [*["skipped"] * 4, "queued"]),
        ("PARALLEL", ["queued"] * 5),
    ],
)
async def test_each_second_that_is_made_up_for_applies_the_policies_one_by_one(
    harness: Harness, overlap: str, fates: list[str]
) -> None:
    """Of several fire times in one scan, each sees the run of the one before."""
    await create(harness, EACH_SECOND, misfire_policy="FIRE_NOW", catchup_limit=None, overlap_action=overlap)
    await pass_time(harness, 5)
    assert await states(harness) == fates


@pytest.mark.parametrize("end", ["failed", "timed_out", "cancelled"])
@pytest.mark.parametrize(
    ("failure", "fate"), [("RUN_NEW", ("queued", 0)), ("SKIP", ("skipped", 0)), ("RETRY", ("queued", 1))]
)
async def test_after_the_last_run_failed_timed_out_or_was_cancelled(
    harness: Harness, failure: str, fate: tuple[str, int], end: str
) -> None:
    """The attempt of a queued run counts those that were made."""
    await create(harness, DEMO, failure_action=failure, backoff=[])
    await pass_time(harness)
    worker = await harness.worker().claim()
    match end:
        case "failed":
            await worker.fail()
        case "timed_out":
            await worker.time_out()
        case _:
            await harness.client.cancel(next(iter(worker.claims)))
            await worker.cancelled()
    await pass_time(harness)
    assert [(run.state.value, run.attempt) for run in await runs(harness)] == [(end, 1), fate]


async def test_a_strategic_skip_is_recorded_with_its_end(harness: Harness) -> None:
    await create(harness, DEMO, overlap_action="SKIP")
    await pass_time(harness)
    await harness.worker().claim()
    await pass_time(harness)
    _, skipped = await runs(harness)
    assert (skipped.state, skipped.attempt, skipped.finished_at) == (RunState.SKIPPED, 0, harness.clock.now())


async def test_a_request_that_takes_too_long_is_a_timeout(harness: Harness) -> None:
    await create(harness, DEMO)
    assert (await harness.client.schedules.get("demo-task")).definition.options == {"timeout": "8s"}
    await pass_time(harness)
    await (await harness.worker().claim()).time_out()
    assert await states(harness) == ["timed_out"]


@pytest.mark.parametrize("seconds", [0, -1])
async def test_no_timeout_is_a_default_of_ten_seconds_for_requests_and_zero_is_refused(
    harness: Harness, seconds: int
) -> None:
    job = await harness.client.data_jobs.create("request", "http", url="https://example.com", max_attempts=1)
    assert job.timeout == timedelta(seconds=10)
    with pytest.raises(Invalid, match="timeout"):
        await create(harness, DEMO, timeout_seconds=seconds)


async def test_metrics_count_what_the_policies_did(harness: Harness) -> None:
    """task_overlap_skipped_total, task_failure_retry_total, concurrency_skipped_total"""
    await create(harness, DEMO, overlap_action="SKIP")
    await pass_time(harness)
    worker = await harness.worker().claim()
    await pass_time(harness)  # the overlap is skipped
    await worker.fail()
    await pass_time(harness)  # the failure is tried again
    await harness.worker().claim()
    await harness.client.schedules.update("demo-task", overlap="allow")
    await pass_time(harness)  # the limit is full
    assert [run.state.value for run in await runs(harness)] == ["failed", "skipped", "running", "skipped"]
    metrics = await harness.client.metrics()
    for name in ("task_overlap_skipped", "task_failure_retry", "concurrency_skipped"):
        assert f'rota_{name}_total{{job="demo",queue="default"}} 1' in metrics


def test_a_request_that_nobody_answers_is_a_timeout_and_its_round_is_tried_again(api: Api) -> None:
    """In real processes: the attempt of the next round is one more."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        api.post("/jobs", {"name": "request", "url": url, "max_attempts": 2}, 201)
        document = {**DEMO, "cron_expr": "*/2 * * * * *", "job": "request", "timeout_seconds": 1}
        api.post("/schedules", document, 201)
        api.worker()
        wait_for(lambda: len(api.get("/runs?job=request&state=timed_out")["items"]) >= 2)
        second, first = api.get("/runs?job=request&state=timed_out")["items"][-2:]
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert (first["error"]["message"], first["schedule"]) == ("longer than 1s", "demo-task")


async def test_a_disabled_task_is_not_scheduled_any_more(harness: Harness) -> None:
    await create(harness, DEMO)
    await harness.client.schedules.update("demo-task", enabled=False)
    await pass_time(harness, 60)
    assert await runs(harness) == []


async def test_cancelling_a_round_that_has_ended_already_changes_nothing(harness: Harness) -> None:
    await create(harness, DEMO)
    await pass_time(harness)
    await (await harness.worker().claim()).finish()
    await pass_time(harness)
    assert await states(harness) == ["succeeded", "queued"]
