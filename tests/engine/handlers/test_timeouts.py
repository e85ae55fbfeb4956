"""Test timeouts: each kind of handler is stopped by the strongest means available."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from rota import Context, RunState
from rota.testing import Harness
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import Working
from tests.support.wait import until, wait_for

Start = Callable[..., Awaitable[Working]]


async def test_a_coroutine_is_cancelled(either: Harness, working: Start) -> None:
    @either.app.job(timeout="30ms", max_attempts=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    run = await either.enqueue(endless)
    real = await working(either)
    done = await real.has_state(run, RunState.TIMED_OUT)
    assert done.error is not None
    assert (done.error.code, done.error.message) == ("timed_out", "longer than 30ms")


async def test_a_runs_own_timeout_goes_before_its_jobs(harness: Harness, working: Start) -> None:
    @harness.app.job(timeout="1h", max_attempts=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    run = await harness.enqueue(endless, {"timeout": "30ms"})
    await (await working(harness)).has_state(run, RunState.TIMED_OUT)


async def test_it_is_tried_again_as_after_a_failure(harness: Harness, working: Start) -> None:
    @harness.app.job(timeout="20ms", max_attempts=2, backoff="0s")
    async def slow_at_first(ctx: Context) -> int:
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    run = await harness.enqueue(slow_at_first)
    assert (await (await working(harness)).has_state(run, RunState.SUCCEEDED)).result == 2


async def test_a_result_that_comes_while_it_is_stopped_counts(harness: Harness, working: Start) -> None:
    @harness.app.job(timeout="20ms")
    async def last_minute() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "saved"
        return "never"

    run = await harness.enqueue(last_minute)
    assert (await (await working(harness)).has_state(run, RunState.SUCCEEDED)).result == "saved"


async def test_a_thread_is_given_up_and_keeps_its_slot_until_it_returns(harness: Harness, working: Start) -> None:
    release = threading.Event()

    @harness.app.job(timeout="30ms", max_attempts=1)
    def stuck() -> None:
        release.wait()

    @harness.app.job
    def after() -> None: ...

    run = await harness.enqueue(stuck)
    real = await working(harness, concurrency=1)
    await real.has_state(run, RunState.TIMED_OUT)
    waiting = await harness.enqueue(after)
    assert await real.worker.step() > 0
    assert await harness.state(waiting) is RunState.QUEUED
    release.set()
    await real.has_state(waiting, RunState.SUCCEEDED)
    assert await harness.state(run) is RunState.TIMED_OUT


async def test_a_thread_sees_it_at_its_checkpoint(harness: Harness, working: Start) -> None:
    ended = threading.Event()

    @harness.app.job(timeout="30ms", max_attempts=1)
    def polite(ctx: Context) -> None:
        try:
            wait_for(ctx.checkpoint)
        finally:
            ended.set()

    run = await harness.enqueue(polite)
    await (await working(harness)).has_state(run, RunState.TIMED_OUT)
    await until(ended.is_set)


async def test_a_process_is_really_killed(harness: Harness, working: Start, tmp_path: Path) -> None:
    job = harness.app.job(isolation="process", timeout="300ms", max_attempts=1)(isolated_jobs.leave_pid_and_hang)
    run = await harness.enqueue(job, place=str(tmp_path / "pid"))
    await (await working(harness)).has_state(run, RunState.TIMED_OUT)
    pid = int((tmp_path / "pid").read_text())
    await until(lambda: not Path(f"/proc/{pid}").exists())
