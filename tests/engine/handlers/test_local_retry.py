"""Test local retries inside one attempt, and the CPU time of threads."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rota import Context, Fail, Outcome, Retry, RunState, Snooze
from rota.testing import Harness
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import Working
from tests.support.wait import PATIENCE, until

Start = Callable[..., Awaitable[Working]]


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_an_exception_is_repeated_inside_the_attempt(
    either: Harness, working: Start, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    def body(ctx: Context) -> int:
        calls.append(ctx.attempt)
        ctx.count("calls")
        if len(calls) < 3:
            raise LookupError("not yet")
        return len(calls)

    if kind == "thread":
        job = either.app.job(name="flaky", local_retries=2)(body)
    else:

        @either.app.job(name="flaky", local_retries=2)
        async def job(ctx: Context) -> int:
            return body(ctx)

    run = await either.enqueue("flaky")
    real = await working(either)
    with caplog.at_level(logging.WARNING, "rota.worker"):
        done = await real.has_state(run, RunState.SUCCEEDED)
    assert (done.result, done.attempt, calls) == (3, 1, [1, 1, 1])
    (attempt,) = await either.attempts(run)
    assert attempt.counters == {"calls": 3, "local_retries": 2}
    told = [one.partition("raised ")[2] for one in caplog.messages if "retrying locally" in one]
    assert [one.rpartition("; ")[2] for one in told] == [f"retrying locally ({number} of 2)" for number in (1, 2)]
    assert all(one.startswith("LookupError: ") for one in told)


async def test_in_a_process_too_and_the_measures_are_of_all_calls(
    either: Harness, working: Start, tmp_path: Path
) -> None:
    job = either.app.job(isolation="process", local_retries=5)(isolated_jobs.fail_until)
    run = await either.enqueue(job, path=str(tmp_path / "calls"), tries=4)
    real = await working(either)
    done = await real.has_state(run, RunState.SUCCEEDED)
    assert (done.result, done.attempt) == (4, 1)
    (attempt,) = await either.attempts(run)
    assert attempt.counters == {"calls": 4, "local_retries": 3}
    assert attempt.cpu_time_ms is not None


async def test_when_they_are_used_up_the_attempt_has_failed(harness: Harness, working: Start) -> None:
    calls = 0

    @harness.app.job(local_retries=3, max_attempts=2, backoff="0s")
    def broken() -> None:
        nonlocal calls
        calls += 1
        raise LookupError("never")

    run = await harness.enqueue(broken)
    real = await working(harness)
    done = await real.has_state(run, RunState.FAILED)
    assert (calls, done.attempt) == (8, 2)
    assert [attempt.counters for attempt in await harness.attempts(run)] == [{"local_retries": 3}] * 2


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Fail("no"), Outcome.FAILED), (Retry("later", after="1h"), Outcome.FAILED), (Snooze("1h"), Outcome.SNOOZED)],
)
async def test_what_a_handler_asks_for_is_not_repeated(
    harness: Harness, working: Start, error: Exception, outcome: Outcome
) -> None:
    calls = 0

    @harness.app.job(local_retries=3)
    async def asking() -> None:
        nonlocal calls
        calls += 1
        raise error

    run = await harness.enqueue(asking)
    real = await working(harness)
    await until(lambda: calls > 0 and not real.worker.held)
    assert calls == 1
    assert [attempt.outcome for attempt in await harness.attempts(run)] == [outcome]


async def test_a_process_that_dies_is_not_repeated(harness: Harness, working: Start) -> None:
    job = harness.app.job(isolation="process", local_retries=3, max_attempts=1)(isolated_jobs.vanish)
    run = await harness.enqueue(job)
    real = await working(harness)
    await real.has_state(run, RunState.FAILED)
    (attempt,) = await harness.attempts(run)
    assert attempt.counters == {}


async def test_one_timeout_covers_all_calls(harness: Harness, working: Start) -> None:
    calls = 0

    @harness.app.job(local_retries=20, timeout="1s", max_attempts=1)
    async def slow() -> None:
        nonlocal calls
        calls += 1
        if calls > 5:  # each takes less than the timeout, all of them together more
            began = time.monotonic()
            await until(lambda: time.monotonic() - began > 0.2)
        raise LookupError("again")

    run = await harness.enqueue(slow)
    real = await working(harness)
    await real.has_state(run, RunState.TIMED_OUT)
    assert calls > 5


@pytest.mark.parametrize("stop", ["cancel", "shutdown"])
async def test_what_is_asked_to_stop_is_not_repeated(harness: Harness, working: Start, stop: str) -> None:
    begun, release = threading.Event(), threading.Event()
    calls = 0

    @harness.app.job(local_retries=3, max_attempts=1, cancel_grace="20s")
    def stubborn(ctx: Context) -> None:
        nonlocal calls
        calls += 1
        begun.set()
        release.wait(PATIENCE)
        raise LookupError("interrupted")

    run = await harness.enqueue(stubborn)
    real = await working(harness)
    await until(begun.is_set)
    if stop == "cancel":
        await harness.cancel(run)
        await until(lambda: real.worker.active[run.id].cancelled)
        release.set()
        await real.has_state(run, RunState.CANCELLED)
    else:
        stopping = asyncio.create_task(real.stop())
        await until(lambda: real.worker.active[run.id].shutting_down)
        release.set()
        await stopping
        assert await harness.state(run) is RunState.FAILED
    assert calls == 1


async def test_the_cpu_time_of_a_thread_is_measured_and_that_of_a_coroutine_is_not(
    either: Harness, working: Start
) -> None:
    done = threading.Event()

    @either.app.job
    def burn() -> None:
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass
        done.set()

    @either.app.job
    def rest() -> None:
        done.wait()  # at least as long

    @either.app.job
    async def turn() -> None:
        await asyncio.sleep(0)

    runs = [await either.enqueue(job) for job in (burn, rest, turn)]
    real = await working(either)
    for run in runs:
        await real.has_state(run, RunState.SUCCEEDED)
    burnt, rested, turned = [(await either.attempts(run))[0].cpu_time_ms for run in runs]
    assert burnt is not None
    assert rested is not None
    assert 190 <= burnt < 400
    assert rested < 50
    assert turned is None


async def test_a_thread_that_fails_has_its_cpu_time_too(harness: Harness, working: Start) -> None:
    @harness.app.job(local_retries=1, max_attempts=1)
    def burn_and_fail() -> None:
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass
        raise LookupError

    run = await harness.enqueue(burn_and_fail)
    real = await working(harness)
    await real.has_state(run, RunState.FAILED)
    (attempt,) = await harness.attempts(run)
    assert attempt.cpu_time_ms is not None
    assert 190 <= attempt.cpu_time_ms < 400
