"""Test cancel: at once before the claim, within a heartbeat after it, and at the latest after the grace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rota import Context, LeaseLost, Outcome, RunState
from rota.core.calendar.triggers import every
from rota.errors import NotCancellable
from rota.testing import Harness
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import RARE, SECOND, Working, until_state
from tests.support.wait import until, wait_for

Start = Callable[..., Awaitable[Working]]


async def test_a_queued_run_is_cancelled_at_once_and_never_begins(either: Harness) -> None:
    run = await either.enqueue("job")
    assert (await either.cancel(run)).state is RunState.CANCELLED
    assert (await either.worker().claim()).claims == {}
    assert (await either.run(run)).fence == 1


async def test_a_scheduled_run_is_cancelled_at_once_and_never_begins(either: Harness) -> None:
    run = await either.enqueue("job", {"delay": "1h"})
    assert (await either.cancel(run)).state is RunState.CANCELLED
    either.clock.advance("2h")
    await either.promoter.step()
    assert (await either.worker().claim()).claims == {}


async def test_a_run_that_backs_off_is_cancelled_with_its_attempts_kept(either: Harness) -> None:
    run = await either.enqueue("job")
    await (await either.worker().claim()).fail()
    assert (await either.cancel(run)).state is RunState.CANCELLED
    assert (await either.run(run)).attempt == 1
    assert [attempt.outcome for attempt in await either.attempts(run)] == [Outcome.FAILED]


async def test_the_worker_hears_of_it_in_its_next_heartbeat(either: Harness) -> None:
    run = await either.enqueue("job")
    worker = await either.worker().claim()
    assert (await worker.heartbeat()).cancelling == set()
    assert (await either.cancel(run)).state is RunState.CANCELLING
    assert (await worker.heartbeat()).cancelling == {run.id}
    await worker.cancelled()
    assert await either.state(run) is RunState.CANCELLED


async def test_a_success_while_cancelling_is_what_happened(either: Harness) -> None:
    run = await either.enqueue("job")
    worker = await either.worker().claim()
    await either.cancel(run)
    await worker.finish(result=1)
    done = await either.run(run)
    assert (done.state, done.result) == (RunState.SUCCEEDED, 1)


async def test_any_other_end_while_cancelling_is_cancelled(either: Harness) -> None:
    runs = [await either.enqueue("job") for _ in range(4)]
    worker = await either.worker().claim(4)
    for run in runs:
        await either.cancel(run)
    failed, timed_out, handed_back, _lost = runs
    await worker.fail(failed)
    await worker.time_out(timed_out)
    await worker.hand_back(handed_back, began=True)
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    assert {await either.state(run) for run in runs} == {RunState.CANCELLED}


async def test_when_the_grace_is_over_the_reaper_ends_it_and_the_fence_grows(either: Harness) -> None:
    await either.declare("deaf", cancel_grace="10s")
    run = await either.enqueue("deaf")
    worker = await either.worker().claim()
    await either.cancel(run)
    either.clock.advance("10s")
    await worker.heartbeat()
    await either.reaper.step()
    assert await either.state(run) is RunState.CANCELLING
    either.clock.advance("1s")
    await either.reaper.step()
    done = await either.run(run)
    assert (done.state, done.fence) == (RunState.CANCELLED, worker.fence() + 1)
    with pytest.raises(LeaseLost):
        await worker.finish()


async def test_cancelling_twice_does_not_prolong_the_grace(either: Harness) -> None:
    await either.declare("deaf", cancel_grace="10s")
    run = await either.enqueue("deaf")
    await either.worker().claim()
    await either.cancel(run)
    either.clock.advance("8s")
    await either.cancel(run)
    either.clock.advance("3s")
    await either.reaper.step()
    assert await either.state(run) is RunState.CANCELLED


async def test_a_job_that_does_not_support_it_refuses_once_begun(either: Harness) -> None:
    await either.declare("surgery", cancellable=False)
    begun = await either.enqueue("surgery")
    await either.worker().claim()
    waiting = await either.enqueue("surgery")
    with pytest.raises(NotCancellable):
        await either.cancel(begun)
    assert (await either.cancel(waiting)).state is RunState.CANCELLED


async def test_a_coroutine_is_cancelled_like_any_task(either: Harness, working: Start) -> None:
    heard = asyncio.Event()

    @either.app.job
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.set()
            raise

    run = await either.enqueue(endless)
    real = await working(either)
    await real.has_state(run, RunState.RUNNING)
    await either.cancel(run)
    await real.has_state(run, RunState.CANCELLED)
    assert heard.is_set()


async def test_a_coroutine_with_a_context_may_stop_by_itself(harness: Harness, working: Start) -> None:
    interrupted: list[str] = []

    @harness.app.job
    async def polite(ctx: Context) -> None:
        try:
            await until(ctx.checkpoint)
        except asyncio.CancelledError:
            interrupted.append("too early")
            raise

    run = await harness.enqueue(polite)
    real = await working(harness)
    await real.has_state(run, RunState.RUNNING)
    await harness.cancel(run)
    await real.has_state(run, RunState.CANCELLED)
    assert interrupted == []


async def test_a_policy_interrupts_a_coroutine_at_its_next_await(
    either: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told by a notification alone: polls and heartbeats are an hour apart. Its grace is for what it does then."""
    monkeypatch.setattr("rota.engine.worker.executor._LONGEST_COOPERATION", 3_600.0)
    heard: list[bool] = []

    @either.app.job(cancel_grace="1h")
    async def endless(ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.to_thread(heard.append, ctx.cancelled)
            raise

    await either.client.schedules.create("s", "endless", every("10s"), overlap="cancel_previous")
    real = await working(either, **RARE)
    first, second = [await next_run(either) for _ in range(2)]
    done = await real.has_state(first, RunState.CANCELLED)
    assert (heard, done.cancelled_by) == ([True], "policy:overlap")
    await real.has_state(second, RunState.RUNNING)


async def next_run(harness: Harness) -> str:
    """Plan the next run of the schedule, and wait until it runs, or an earlier one is asked to stop."""
    harness.clock.advance("10s")
    await harness.planner.step()
    run, *earlier = await harness.client.list(limit=2)
    if not earlier:
        await until_state(harness, run.id, RunState.RUNNING)
    return run.id


async def test_a_coroutine_that_ignores_its_context_is_interrupted(harness: Harness, working: Start) -> None:
    @harness.app.job(cancel_grace="60ms")
    async def deaf(ctx: Context) -> None:
        await asyncio.Event().wait()

    run = await harness.enqueue(deaf)
    real = await working(harness)
    await real.has_state(run, RunState.RUNNING)
    await harness.cancel(run)
    await real.has_state(run, RunState.CANCELLED)


async def test_a_coroutine_that_resists_is_given_up_and_keeps_its_slot(harness: Harness, working: Start) -> None:
    release = asyncio.Event()

    @harness.app.job(cancel_grace="30ms")
    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    @harness.app.job
    async def after() -> None: ...

    run = await harness.enqueue(stubborn)
    real = await working(harness, concurrency=1)
    await real.has_state(run, RunState.RUNNING)
    await harness.cancel(run)
    await real.has_state(run, RunState.CANCELLED)
    waiting = await harness.enqueue(after)
    assert await real.worker.step() > 0
    assert await harness.state(waiting) is RunState.QUEUED
    release.set()
    await real.has_state(waiting, RunState.SUCCEEDED)


async def test_a_thread_stops_at_its_checkpoint(harness: Harness, working: Start) -> None:
    @harness.app.job
    def threaded(ctx: Context) -> None:
        wait_for(ctx.checkpoint)

    run = await harness.enqueue(threaded)
    real = await working(harness)
    await real.has_state(run, RunState.RUNNING)
    await harness.cancel(run)
    await real.has_state(run, RunState.CANCELLED)


async def test_a_handler_that_finishes_all_the_same_has_succeeded(harness: Harness, working: Start) -> None:
    @harness.app.job
    def thorough(ctx: Context) -> str:
        wait_for(lambda: ctx.cancelled)
        return "done nevertheless"

    run = await harness.enqueue(thorough)
    real = await working(harness)
    await real.has_state(run, RunState.RUNNING)
    await harness.cancel(run)
    assert (await real.has_state(run, RunState.SUCCEEDED)).result == "done nevertheless"


async def test_a_process_is_killed(harness: Harness, working: Start, tmp_path: Path) -> None:
    job = harness.app.job(isolation="process")(isolated_jobs.leave_pid_and_hang)
    run = await harness.enqueue(job, place=str(tmp_path / "pid"))
    real = await working(harness)
    await until((tmp_path / "pid").exists)
    await harness.cancel(run)
    await real.has_state(run, RunState.CANCELLED)
    pid = int((tmp_path / "pid").read_text())
    await until(lambda: not Path(f"/proc/{pid}").exists())


async def test_a_process_with_a_context_stops_at_its_checkpoint(
    harness: Harness, working: Start, tmp_path: Path
) -> None:
    job = harness.app.job(isolation="process")(isolated_jobs.stop_at_checkpoint)
    run = await harness.enqueue(job, place=str(tmp_path / "pid"))
    real = await working(harness)
    await until((tmp_path / "pid").exists)
    await harness.cancel(run)
    await real.has_state(run, RunState.CANCELLED)


async def test_a_run_in_a_workers_buffer_never_begins(
    either: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: 5)
    begun: list[int] = []
    release = asyncio.Event()

    @either.app.job
    async def noting(n: int) -> None:
        begun.append(n)
        await release.wait()

    runs = [await either.enqueue(noting, n=n) for n in range(2)]
    real = await working(either, concurrency=1)
    await until_state(either, runs[0], RunState.RUNNING)
    await until_state(either, runs[1], RunState.RUNNING)
    buffered = runs[1 - begun[0]]
    assert (await either.cancel(buffered)).state is RunState.CANCELLING
    await real.has_state(buffered, RunState.CANCELLED)
    release.set()
    await real.idle()
    assert len(begun) == 1
    assert (await either.attempts(buffered))[0].started_at is None


async def test_the_worker_looks_for_cancels_without_waiting_for_its_heartbeat(either: Harness, working: Start) -> None:
    @either.app.job
    async def endless() -> None:
        await asyncio.Event().wait()

    run = await either.enqueue(endless)
    hour = timedelta(hours=1)
    real = await working(either, heartbeat=hour, lease=3 * hour, poll=timedelta(milliseconds=20))
    await until(lambda: len(real.worker.active) == 1)
    await either.cancel(run)
    either.clock.advance("1s")
    await real.has_state(run, RunState.CANCELLED)
