"""Test the loops' metrics: counted once, where it happens, and parsed by Prometheus' own client."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rota import Order, RunState, Snooze
from rota.core.calendar.triggers import every
from rota.core.planning.tally import Tally
from rota.core.runs.outcome import Report
from rota.core.runs.run import RunFilter
from rota.core.states import Outcome
from rota.engine.engine import Engine
from rota.engine.loop import Loop
from rota.engine.loops.planner import Planner
from rota.engine.loops.reaper import Reaper
from rota.engine.observability.job_counters import MOST_JOBS
from rota.engine.observability.meters import Meters
from rota.errors import Unavailable
from rota.observability.metrics import OTHER
from rota.store import Store
from rota.store.runs.report import Reported
from rota.testing import Harness
from tests.support.databases.unreliable_store import ShakyStore
from tests.support.runs.real_worker import Working
from tests.support.schedules.schedules import make_schedule
from tests.support.wait import until

Start = Callable[..., Awaitable[Working]]
POLL = timedelta(seconds=10)


async def read(harness: Harness, name: str, **labels: str) -> float:
    """Return the sum over the samples of the text that have these labels."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(await harness.client.metrics())
        for sample in family.samples
        if sample.name == name and sample.labels.items() >= labels.items()
    )


async def test_runs_by_how_they_end(harness: Harness, working: Start) -> None:
    @harness.app.job(max_attempts=2, backoff=[timedelta(0)])
    async def work(what: str, seen: list[int]) -> None:
        if what == "fail":
            raise ValueError
        if what == "snooze":
            raise Snooze("1h")

    for what in ("fine", "fine", "fail", "snooze"):
        await harness.enqueue(work, what=what, seen=[])
    real = await working(harness)
    await until(lambda: real.worker._meters.total(RunState.FAILED) == 1)
    await real.idle()
    real.worker.wake()  # a claim that got less than it asked for is not followed by another: nothing is left
    await until(lambda: real.worker._meters._empty.value >= 1)
    assert await read(harness, "rota_runs_enqueued_total") == 4
    assert await read(harness, "rota_runs_total", status="succeeded") == 2
    assert await read(harness, "rota_runs_total", status="failed") == 1
    assert await read(harness, "rota_attempts_total", outcome="failed") == 2
    assert await read(harness, "rota_attempts_total", outcome="snoozed") == 1
    assert await read(harness, "rota_task_failure_retry_total") == 1
    assert await read(harness, "rota_claimed_runs_total") == 5
    assert await read(harness, "rota_claims_total", result="won") >= 1
    assert await read(harness, "rota_claims_total", result="empty") >= 1
    assert await read(harness, "rota_run_duration_seconds_count", outcome="succeeded") == 2
    assert await read(harness, "rota_run_duration_seconds_count", outcome="failed") == 2


async def test_each_job_and_queue_has_its_own_series(harness: Harness, working: Start) -> None:
    @harness.app.job()
    async def one() -> None: ...

    @harness.app.job(queue="mail", max_attempts=1)
    async def two() -> None:
        raise ValueError

    await harness.app.aenqueue_many([one.order(), two.order(), one.order()])
    real = await working(harness, queues=("default", "mail"))
    await until(lambda: real.worker._meters.total(RunState.FAILED) == 1)
    await until(lambda: real.worker._meters.total(RunState.SUCCEEDED) == 2)
    await real.idle()
    for job, queue, runs, status in (("one", "default", 2, "succeeded"), ("two", "mail", 1, "failed")):
        labels = {"job": job, "queue": queue}
        assert await read(harness, "rota_runs_enqueued_total", **labels) == runs
        assert await read(harness, "rota_runs_total", **labels) == runs
        assert await read(harness, "rota_runs_total", **labels, status=status) == runs
        assert await read(harness, "rota_attempts_total", **labels, outcome=status) == runs


async def test_a_part_of_a_pipeline_counts_for_the_pipeline(harness: Harness) -> None:
    for name in ("fetch", "pack"):
        await harness.declare(name)
    await harness.client.data_jobs.create(
        "chain", "pipeline", pipeline=[{"step": "first", "job": "fetch"}, {"step": "second", "job": "pack"}]
    )
    await harness.client.enqueue(Order("chain", {}))
    meters = Meters()
    for _ in range(2):
        worker = await harness.worker().claim()
        ((claim),) = worker.claims.values()
        report = Report(
            claim.run_id, claim.fence, Outcome.SUCCEEDED, part=claim.part, job=claim.run_job, queue="default"
        )
        meters.reported([report], await harness.store.report([report]))
        worker.claims.clear()
    assert list(meters.of) == [("chain", "default")]
    counters = meters.of["chain", "default"]
    assert (counters.attempts[Outcome.SUCCEEDED].value, counters.runs[RunState.SUCCEEDED].value) == (2, 1)


def test_too_many_jobs_are_counted_together() -> None:
    meters = Meters()
    for number in range(MOST_JOBS + 50):
        meters.of[f"job {number}", "default"].runs[RunState.FAILED].add()
        meters.planned(Tally(ran={(f"job {number}", "default"): 1}))
    samples = [
        sample
        for family in text_string_to_metric_families(meters.text(None))
        for sample in family.samples
        if (sample.name, sample.labels.get("status")) == ("rota_runs_total", "failed")
        or (sample.name, sample.labels.get("outcome")) == ("rota_plan_times_total", "ran")
    ]
    assert len(samples) == 2 * (MOST_JOBS + 1)
    assert [sample.value for sample in samples if sample.labels["job"] == OTHER] == [50, 50]
    assert {sample.labels["queue"] for sample in samples if sample.labels["job"] == OTHER} == {OTHER}
    assert meters.total(RunState.FAILED) == MOST_JOBS + 50, "charts have them all"


def test_a_run_more_in_a_batch_calls_no_function_more() -> None:
    """On the path of every run, counting by job is the work of a batch."""
    meters = Meters()

    def calls(size: int) -> int:
        batch = [Report("r", 1, Outcome.SUCCEEDED, 10, job="work", queue="default")] * size
        made = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal made
            made += event == "call"

        sys.setprofile(count)
        try:
            meters.reported(batch, Reported([]))
        finally:
            sys.setprofile(None)
        return made

    calls(1)  # the first of a job makes its series
    assert calls(1) == calls(1_000)


async def test_timeouts_are_counted_and_tried_again(harness: Harness, working: Start) -> None:
    @harness.app.job(max_attempts=2, timeout="10ms", backoff=["1h"])
    async def slow() -> None:
        await asyncio.Event().wait()

    await harness.enqueue(slow)
    real = await working(harness)
    await until(lambda: real.worker._meters.of["slow", "default"].timeouts.value == 1)
    assert await read(harness, "rota_task_failure_retry_total") == 1
    assert await read(harness, "rota_attempts_total", outcome="timed_out") == 1
    assert await read(harness, "rota_runs_total", status="timed_out") == 0


async def test_lag_is_measured_by_the_clock_of_the_database(harness: Harness) -> None:
    meters = Meters()
    await Reaper(harness.store, POLL, POLL, meters).step()
    run = await harness.enqueue("work")
    harness.clock.advance("4s")
    worker = await harness.worker().claim()
    claim = worker.claims[run.id]
    meters.claimed([claim], harness.clock.monotonic())
    assert [value for suffix, _, value in meters.lag.samples() if suffix == "_sum"] == [4]
    meters.claimed([claim], harness.clock.monotonic() - 100)  # a clock that was set back
    assert meters.lag.count == 2
    assert [value for suffix, _, value in meters.lag.samples() if suffix == "_sum"] == [4]


async def test_without_knowing_the_clock_of_the_database_there_is_no_lag(harness: Harness) -> None:
    meters = Meters()
    run = await harness.enqueue("work")
    worker = await harness.worker().claim()
    meters.claimed([worker.claims[run.id]], 0.0)
    assert meters.lag.count == 0
    assert meters.claimed_runs.value == 1


async def test_stale_reports_and_lost_leases(harness: Harness, working: Start) -> None:
    release = asyncio.Event()

    @harness.app.job(max_attempts=1)
    async def work() -> None:
        await release.wait()

    await harness.enqueue(work)
    real = await working(harness, heartbeat=harness.lease / 3)
    await until(lambda: bool(real.worker.active))
    ((run_id, fence),) = real.worker.held.items()
    await harness.store.report([Report(run_id, fence, Outcome.LOST)])
    release.set()
    await real.idle()
    assert await read(harness, "rota_reports_refused_total") == 1
    assert await read(harness, "rota_runs_total", status="succeeded") == 0
    assert await read(harness, "rota_attempts_total", outcome="succeeded") == 0


async def test_a_lease_is_lost_once_however_often_it_is_told(harness: Harness, working: Start) -> None:
    release = asyncio.Event()

    @harness.app.job(max_attempts=1, cancel_grace="1m")
    async def stubborn() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    await harness.enqueue(stubborn)
    real = await working(harness)
    await until(lambda: bool(real.worker.active))
    meters = harness.app.meters
    ((run_id, fence),) = real.worker.held.items()
    await harness.store.report([Report(run_id, fence, Outcome.LOST)])
    await until(lambda: meters.of["stubborn", "default"].lost.value > 0)
    before = meters.beats_ok.value
    await until(lambda: meters.beats_ok.value >= before + 3)
    still_held, lost = bool(real.worker.held), meters.of["stubborn", "default"].lost.value
    release.set()
    await real.idle()
    assert (still_held, lost) == (True, 1)


async def test_claims_and_heartbeats_that_fail(
    harness: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.engine.worker.worker._TROUBLE", 0.01)
    store = ShakyStore(harness.store)
    store.claim_faults.append("refused")

    async def away(*_: object) -> Any:
        raise Unavailable("away")

    monkeypatch.setattr(Store, "extend", away)
    real = await working(harness, store=store)
    await until(lambda: real.worker._meters.beats_failed.value >= 1)
    await until(lambda: real.worker._meters.claims_failed.value == 1)
    assert await read(harness, "rota_heartbeats_total", result="ok") == 0


async def test_what_is_reaped_promoted_and_pruned(harness: Harness) -> None:
    await harness.declare("work", max_attempts=2, keep=1, keep_for="1s")
    await harness.enqueue("work")
    for _ in range(2):
        await harness.worker().claim()
        harness.clock.advance(harness.lease + timedelta(seconds=1))
        await harness.reaper.step()
    assert await read(harness, "rota_leases_reaped_total", then="queued") == 1
    assert await read(harness, "rota_leases_reaped_total", then="ended") == 1
    assert await read(harness, "rota_runs_total", status="expired") == 1
    await harness.enqueue("work", {"delay": "10s"})
    harness.clock.advance("11s")
    await harness.promoter.step()
    assert await read(harness, "rota_runs_promoted_total") == 1
    worker = await harness.worker().claim()
    await worker.finish()
    harness.clock.advance("1d")
    await harness.janitor.step()
    assert await read(harness, "rota_runs_pruned_total") == 1


async def test_cancels(harness: Harness) -> None:
    waiting, running = await harness.enqueue("work"), await harness.enqueue("work", {"priority": 1})
    await harness.worker().claim()
    await harness.cancel(waiting)
    await harness.cancel(running)
    assert await read(harness, "rota_cancel_requests_total") == 2
    assert await read(harness, "rota_runs_total", status="cancelled") == 1


@pytest.mark.parametrize("at_once", ["by filter", "with their job"])
async def test_many_cancelled_at_once(harness: Harness, at_once: str) -> None:
    await harness.enqueue("work", {"priority": 1})
    await harness.worker().claim()
    for _ in range(3):
        await harness.enqueue("work")
    if at_once == "by filter":
        await harness.client.cancel_many(RunFilter(job="work"))
    else:
        assert (await harness.client.cancel_job("work")).cancelled == 4
    assert await read(harness, "rota_runs_total", status="cancelled") == 3
    assert harness.client.meters.counted().runs == {"cancelled": 3}, "what charts are made of"


async def test_plan_times_by_what_became_of_them(harness: Harness) -> None:
    await make_schedule(harness.store, "plain", every("1m"))
    harness.clock.advance("1m")
    await harness.planner.step()
    harness.clock.advance("90s")
    await harness.planner.step()  # the first run is not over
    assert await read(harness, "rota_plan_times_total", outcome="ran", reason="") == 1
    assert await read(harness, "rota_plan_times_total", outcome="skipped", reason="overlap") == 1
    assert await read(harness, "rota_task_overlap_skipped_total") == 1
    assert await read(harness, "rota_runs_total", status="skipped") == 1
    assert await read(harness, "rota_plan_lateness_seconds_count") == 1
    harness.clock.advance("3d")
    await harness.planner.step()
    assert await read(harness, "rota_plan_times_total", outcome="missed", reason="window") > 1_000
    assert await read(harness, "rota_plan_times_total", outcome="coalesced", reason="") > 1_000


async def test_plan_times_that_are_another_attempt(harness: Harness) -> None:
    """A schedule with failure=retry tries again: its runs have no retries of their own."""
    await harness.declare("work", max_attempts=3)
    await harness.client.schedules.create("s", "work", every("1m"), failure="retry")
    for _ in range(4):  # attempts 1, 2, 3, and 1 again
        harness.clock.advance("1m")
        await harness.planner.step()
        await (await harness.worker().claim()).fail()
    assert await read(harness, "rota_task_failure_retry_total") == 2


async def test_plan_times_that_a_limit_or_a_key_does_not_let_be(harness: Harness) -> None:
    options: dict[str, dict[str, Any]] = {
        "full": {"limit": {"max": 1, "when_full": "skip"}},
        "same": {"unique": True},
    }
    for name, own in options.items():
        await harness.declare(name, **own)
        job = harness.app.registry.newest[name].definition
        await make_schedule(harness.store, name, every("1m" if name == "full" else "2m"), job=job, overlap="allow")
    for _ in range(4):
        harness.clock.advance("1m")
        await harness.planner.step()
    assert await read(harness, "rota_concurrency_skipped_total") == 3
    assert await read(harness, "rota_plan_times_total", outcome="skipped", reason="limit") == 3
    assert await read(harness, "rota_plan_times_total", outcome="skipped", reason="unique") == 1
    assert await read(harness, "rota_plan_times_total", outcome="ran", reason="") == 2


async def test_providers_that_fail(harness: Harness) -> None:
    def broken() -> Any:
        raise OSError("away")

    await make_schedule(harness.store, "s", every("1m"), scopes="tenants")
    harness.clock.advance("1m")
    meters = Meters()
    await Planner(harness.store, {"tenants": broken}, POLL, meters).step()
    assert meters.provider_errors.value == 1


async def test_loops_tell_when_they_last_worked_and_how_often_they_failed(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    meters = Meters()
    loop = Loop("promoter", harness.promoter, meters, harness.clock)
    await loop._step()
    assert meters.last_step("promoter").value == harness.clock.micros() / 1_000_000

    async def away(*_: object) -> Any:
        raise Unavailable("away")

    monkeypatch.setattr(harness.store, "promote", away)
    harness.clock.advance("1m")
    await loop._step()
    assert meters.loop_errors("promoter").value == 1
    assert meters.last_step("promoter").value == harness.clock.micros() / 1_000_000 - 60


async def test_gauges_are_read_when_somebody_asks(harness: Harness) -> None:
    for _ in range(3):
        await harness.enqueue("work")
    harness.clock.advance("8s")
    await harness.worker().heartbeat()
    assert await read(harness, "rota_database_up") == 1
    assert await read(harness, "rota_queue_runs", queue="default", state="queued") == 3
    assert await read(harness, "rota_queue_oldest_age_seconds", queue="default", state="queued") == 8
    assert await read(harness, "rota_workers", state="alive") == 1
    await harness.worker().claim(3)
    assert await read(harness, "rota_queue_runs", queue="default", state="queued") == 3  # known for a moment
    harness.clock.advance("2s")
    assert await read(harness, "rota_queue_runs", queue="default", state="queued") == 0
    assert await read(harness, "rota_queue_runs", queue="default", state="running") == 3


async def test_a_database_that_is_away_is_a_number_too(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await harness.enqueue("work")
    assert await read(harness, "rota_queue_runs", queue="default", state="queued") == 1
    harness.clock.advance("1m")

    async def away(_: int) -> Any:
        raise Unavailable("away")

    monkeypatch.setattr(harness.store, "levels", away)
    assert await read(harness, "rota_database_up") == 0
    assert await read(harness, "rota_queue_runs", queue="default", state="queued") == 0
    assert await read(harness, "rota_runs_enqueued_total") == 1


async def test_two_apps_do_not_count_for_each_other(harness: Harness, sqlite_url: str) -> None:
    await harness.enqueue("work")
    one = Engine(harness.store, harness.app.registry, harness.config, meters=Meters())
    assert one.worker is not None
    assert list(one.worker._meters.of) == []
    assert harness.app.meters.of["work", "default"].enqueued.value == 1
