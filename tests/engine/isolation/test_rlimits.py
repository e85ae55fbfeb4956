"""Test CPU and memory limits of isolated handlers with real child processes, and how a death is described."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import Outcome, RunState
from rota.engine.isolation.process_pool import ProcessCall, ProcessOutcome, ProcessPool
from rota.engine.isolation.protocol import Death
from rota.engine.isolation.rlimits import told
from rota.testing import Harness
from tests.support.jobs import isolated_jobs, process_handlers
from tests.support.runs.real_worker import Working

Start = Callable[..., Awaitable[Working]]

HANDLERS = process_handlers.__name__
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
MB = 1 << 20


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool]:
    """One child at a time: every call meets what the one before left behind."""
    pool = ProcessPool(1, invoke=f"{HANDLERS}:invoke")
    yield pool
    await pool.close(timedelta(seconds=5))


async def run(
    pool: ProcessPool, qualname: str, *, cpu: float | None = None, memory: int | None = None, **arguments: object
) -> ProcessOutcome:
    call = ProcessCall(HANDLERS, qualname, None, msgspec.json.encode(arguments), b"{}", cpu, memory)
    return await pool.run("a", call)


def value(outcome: ProcessOutcome) -> Any:
    return msgspec.json.decode(outcome.value)


def death(outcome: ProcessOutcome) -> Death:
    assert outcome.status == "died"
    return msgspec.json.decode(outcome.value, type=Death)


async def test_too_much_cpu_ends_the_process_and_is_told_with_limit_and_use(pool: ProcessPool) -> None:
    outcome = await run(pool, "burn", cpu=1.0, seconds=30)
    assert death(outcome).signal == signal.SIGXCPU
    assert outcome.cpu_time_ms is not None
    assert 900 < outcome.cpu_time_ms < 3_000
    error = told(death(outcome))
    assert error.code == "cpu_limit"
    assert error.message.startswith("more CPU time than its limit of 1s; used ")


async def test_what_a_warm_child_used_before_does_not_count(pool: ProcessPool) -> None:
    before = value(await run(pool, "process_id"))
    await run(pool, "burn", seconds=1.2)
    assert (await run(pool, "burn", cpu=1.0, seconds=0.5)).status == "returned"
    assert value(await run(pool, "process_id")) == before


@linux_only
async def test_too_much_memory_is_an_exception_with_limit_and_use(pool: ProcessPool) -> None:
    pid = value(await run(pool, "process_id"))
    outcome = await run(pool, "hold", memory=200 * MB, megabytes=300)
    assert (outcome.status, value(outcome)["type"], value(outcome)["code"]) == ("raised", "MemoryError", "memory_limit")
    assert value(outcome)["message"].startswith("more memory than its limit of 200MB; ")
    assert value(await run(pool, "hold", memory=200 * MB, megabytes=100)) == 100 * MB
    assert value(await run(pool, "process_id")) == pid


@linux_only
async def test_private_mappings_count_and_idle_threads_hardly(pool: ProcessPool) -> None:
    assert value(await run(pool, "hold_mapped", memory=200 * MB, megabytes=300))["code"] == "memory_limit"
    assert value(await run(pool, "many_threads", memory=300 * MB, count=16)) == 16


@linux_only
async def test_limits_are_put_back_after_the_call(pool: ProcessPool) -> None:
    before = value(await run(pool, "soft_limits"))
    cpu, memory = value(await run(pool, "soft_limits", cpu=5.0, memory=200 * MB))
    assert 5 <= cpu <= 7
    assert memory == 200 * MB
    assert value(await run(pool, "hold", memory=200 * MB, megabytes=300))["code"] == "memory_limit"
    assert value(await run(pool, "soft_limits")) == before
    assert value(await run(pool, "hold", megabytes=300)) == 300 * MB
    hard = [resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_CPU, resource.RLIMIT_DATA)]
    assert [max(one, 0) for one in before] == [max(one, 0) for one in hard], "hard limits are as they were here"


@linux_only
async def test_what_earlier_calls_left_behind_is_not_the_next_ones_to_pay_for(pool: ProcessPool) -> None:
    full = value(await run(pool, "keep", megabytes=150))
    assert value(await run(pool, "hold", memory=200 * MB, megabytes=120)) == 120 * MB
    assert value(await run(pool, "process_id")) != full


@linux_only
async def test_a_limit_below_what_the_imports_take_is_told(pool: ProcessPool) -> None:
    outcome = await run(pool, "process_id", memory=8 * MB)
    assert value(outcome)["code"] == "memory_limit"
    assert "before the handler begins" in value(outcome)["message"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_handler_that_ends_its_process_over_and_over_does_not_use_up_the_pool(
    pool: ProcessPool, number: int
) -> None:
    for _ in range(5):
        ended = death(await run(pool, "kill_self", number=number))
        assert (ended.signal, ended.ours) == (number, False)
    assert value(await run(pool, "add", a=1, b=2)) == 3


@pytest.mark.parametrize(
    ("death", "code", "words"),
    [
        (Death(3, None), "process_died", "the process ended with exit code 3"),
        (Death(None, signal.SIGSEGV), "process_died", "the process ended with SIGSEGV"),
        (Death(None, signal.SIGKILL, ours=True), "process_died", "the process ended with SIGKILL"),
        (
            Death(None, signal.SIGKILL),
            "process_died",
            "SIGKILL, which this worker did not send: perhaps the",
        ),
        (Death(None, signal.SIGABRT, memory_limit=64 * MB), "process_died", "SIGABRT, perhaps out of memory: its"),
        (Death(None, signal.SIGXCPU), "process_died", "the process ended with SIGXCPU"),
        (Death(None, 40), "process_died", "the process ended with signal 40"),
        (Death(None, signal.SIGXCPU, cpu_limit=2, cpu_time_ms=2400), "cpu_limit", "its limit of 2s; used 2.4s"),
    ],
)
def test_a_death_in_words(death: Death, code: str, words: str) -> None:
    assert told(death).code == code
    assert words in told(death).message


async def test_exceeded_limits_fail_the_attempt_and_are_retried(harness: Harness, working: Start) -> None:
    burn = harness.app.job(isolation="process", max_attempts=2, backoff="0s", cpu_limit="1s")(isolated_jobs.burn)
    run = await harness.enqueue(burn, seconds=30.0)
    real = await working(harness)
    done = await real.has_state(run, RunState.FAILED)
    assert done.error is not None
    assert (done.attempt, done.error.code) == (2, "cpu_limit")
    for attempt in await harness.attempts(run):
        assert attempt.outcome is Outcome.FAILED
        assert attempt.cpu_time_ms is not None
        assert 900 < attempt.cpu_time_ms < 3_000


@linux_only
async def test_exceeded_memory_fails_the_attempt_and_is_retried(harness: Harness, working: Start) -> None:
    hold = harness.app.job(isolation="process", max_attempts=2, backoff="0s", memory_limit="200MB")(isolated_jobs.hold)
    run = await harness.enqueue(hold, megabytes=400)
    fits = await harness.enqueue(hold, megabytes=50)
    real = await working(harness)
    done = await real.has_state(run, RunState.FAILED)
    assert done.error is not None
    assert (done.attempt, done.error.type, done.error.code) == (2, "MemoryError", "memory_limit")
    await real.has_state(fits, RunState.SUCCEEDED)


async def test_a_handler_that_kills_its_process_harms_nobody_else(harness: Harness, working: Start) -> None:
    poison = harness.app.job(isolation="process", max_attempts=3, backoff="0s")(isolated_jobs.kill_self)
    count = harness.app.job(isolation="process")(isolated_jobs.count)
    bad = [await harness.enqueue(poison) for _ in range(4)]
    good = [await harness.enqueue(count, n=3) for _ in range(6)]
    real = await working(harness, concurrency=2)
    for run in bad:
        done = await real.has_state(run, RunState.FAILED)
        assert done.error is not None
        assert done.error.code == "process_died"
        assert "SIGKILL, which this worker did not send" in done.error.message
        assert [attempt.outcome for attempt in await harness.attempts(run)] == [Outcome.FAILED] * 3
    for run in good:
        await real.has_state(run, RunState.SUCCEEDED)
