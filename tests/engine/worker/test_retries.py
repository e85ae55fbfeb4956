"""Test what follows a failure: a retry after a delay, or none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rota import Exponential, Fail, Outcome, Retry, RunState, Snooze, every
from rota.testing import Harness

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)


async def fail_once(harness: Harness, error: BaseException | None = None) -> None:
    await harness.promoter.step()
    await (await harness.worker().claim()).fail(error=error)


async def delays(harness: Harness, job: str, failures: int) -> list[timedelta]:
    """Return how long each failure delays the run."""
    run = await harness.enqueue(job)
    waits = []
    for _ in range(failures):
        await fail_once(harness)
        waits.append((await harness.run(run)).run_at - harness.clock.now())
        harness.clock.advance(waits[-1])
    return waits


async def test_by_default_the_backoff_doubles_from_a_minute(harness: Harness) -> None:
    assert await delays(harness, "default", 3) == [MINUTE, 2 * MINUTE, 4 * MINUTE]


async def test_an_exponential_backoff_meets_its_cap(harness: Harness) -> None:
    await harness.declare("capped", backoff=Exponential(base=MINUTE, factor=10, cap=HOUR), max_attempts=9)
    assert await delays(harness, "capped", 4) == [MINUTE, 10 * MINUTE, HOUR, HOUR]


async def test_the_last_delay_of_a_list_repeats(harness: Harness) -> None:
    await harness.declare("listed", backoff=["5s", "1m"], max_attempts=9)
    assert await delays(harness, "listed", 3) == [timedelta(seconds=5), MINUTE, MINUTE]


async def test_a_backoff_is_a_lower_bound(either: Harness) -> None:
    await either.declare("slow", backoff="10m")
    run = await either.enqueue("slow")
    await fail_once(either)
    either.clock.advance(10 * MINUTE - MICROSECOND)
    await either.promoter.step()
    assert await either.state(run) is RunState.SCHEDULED
    assert (await either.worker().claim()).claims == {}
    either.clock.advance(MICROSECOND)
    await either.promoter.step()
    assert await either.state(run) is RunState.QUEUED


async def test_attempts_never_exceed_their_number(either: Harness) -> None:
    await either.declare("hopeless", backoff="0s", max_attempts=3)
    run = await either.enqueue("hopeless")
    for _ in range(3):
        await fail_once(either)
    done = await either.run(run)
    assert (done.state, done.attempt) == (RunState.FAILED, 3)
    assert done.error is not None
    assert done.error.message == "failed by hand"
    assert [attempt.no for attempt in await either.attempts(run)] == [1, 2, 3]


async def test_an_empty_backoff_means_no_retry(harness: Harness) -> None:
    await harness.declare("once", backoff=[])
    run = await harness.enqueue("once")
    await fail_once(harness)
    assert await harness.state(run) is RunState.FAILED


async def test_a_runs_own_policy_goes_before_its_jobs(harness: Harness) -> None:
    run = await harness.enqueue("default", {"max_attempts": 2, "backoff": "7s"})
    await fail_once(harness)
    assert (await harness.run(run)).run_at - harness.clock.now() == timedelta(seconds=7)
    harness.clock.advance("7s")
    await fail_once(harness)
    assert await harness.state(run) is RunState.FAILED


async def test_a_run_pins_its_number_of_attempts_whatever_newer_code_says(harness: Harness) -> None:
    await harness.declare("changing", max_attempts=2)
    run = await harness.enqueue("changing")
    async with Harness(url=harness.config.database_url, clock=harness.clock) as newer:
        await newer.declare("changing", version=2, backoff="0s", max_attempts=50)
        await fail_once(newer)
        await fail_once(newer)
    assert await harness.state(run) is RunState.FAILED


async def test_retry_says_when(harness: Harness) -> None:
    run = await harness.enqueue("default")
    await fail_once(harness, Retry("busy", after="3h"))
    failed = await harness.run(run)
    assert (failed.state, failed.attempt) == (RunState.SCHEDULED, 1)
    assert failed.run_at - harness.clock.now() == 3 * HOUR


async def test_retry_costs_an_attempt_like_any_failure(harness: Harness) -> None:
    run = await harness.enqueue("default", {"max_attempts": 1})
    await fail_once(harness, Retry(after="1s"))
    assert await harness.state(run) is RunState.FAILED


async def test_fail_is_for_good(harness: Harness) -> None:
    run = await harness.enqueue("default")
    await fail_once(harness, Fail("no such account"))
    done = await harness.run(run)
    assert (done.state, done.attempt) == (RunState.FAILED, 1)
    assert done.error is not None
    assert done.error.type == "Fail"


async def test_snooze_costs_no_attempt(either: Harness) -> None:
    run = await either.enqueue("default", {"max_attempts": 1})
    for _ in range(3):
        await fail_once(either, Snooze("5m"))
        snoozed = await either.run(run)
        assert (snoozed.state, snoozed.attempt) == (RunState.SCHEDULED, 0)
        assert snoozed.run_at - either.clock.now() == 5 * MINUTE
        either.clock.advance("5m")
    await either.promoter.step()
    await (await either.worker().claim()).finish(run)
    outcomes = [attempt.outcome for attempt in await either.attempts(run)]
    assert outcomes == [Outcome.SNOOZED] * 3 + [Outcome.SUCCEEDED]


async def test_a_timeout_is_retried_like_a_failure(harness: Harness) -> None:
    await harness.declare("slow", backoff="1m", max_attempts=2, timeout="5s")
    run = await harness.enqueue("slow")
    await (await harness.worker().claim()).time_out()
    assert await harness.state(run) is RunState.SCHEDULED
    harness.clock.advance("1m")
    await harness.promoter.step()
    await (await harness.worker().claim()).time_out()
    done = await harness.run(run)
    assert done.state is RunState.TIMED_OUT
    assert done.error is not None
    assert done.error.code == "timed_out"


@pytest.mark.parametrize("signal", ["Retry", "Fail", "Snooze", "return"])
async def test_the_signals_mean_the_same_in_a_real_handler(harness: Harness, signal: str) -> None:
    @harness.app.job
    async def signalling(signal: str) -> str:
        match signal:
            case "Retry":
                raise Retry(after="3h")
            case "Fail":
                raise Fail("never")
            case "Snooze":
                raise Snooze("2h")
        return "fine"

    run = await harness.enqueue(signalling, signal=signal)
    await harness.drain()
    seen = await harness.run(run)
    expected = {
        "Retry": (RunState.SCHEDULED, 1, 3 * HOUR),
        "Fail": (RunState.FAILED, 1, timedelta(0)),
        "Snooze": (RunState.SCHEDULED, 0, 2 * HOUR),
        "return": (RunState.SUCCEEDED, 1, timedelta(0)),
    }
    assert (seen.state, seen.attempt, seen.run_at - harness.clock.now()) == expected[signal]


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({}, [2.5, 2.5, 2.5]),
        ({"backoff": "30s"}, [30, 30, 30]),
        ({"backoff": Exponential(base=timedelta(seconds=20))}, [20, 40, 80]),
        ({"backoff": Exponential()}, [60, 120, 240]),  # as long as the default, but given
    ],
)
async def test_the_default_backoff_leaves_room_for_the_next_plan_time(
    either: Harness, options: dict[str, Any], waits: list[float]
) -> None:
    """Otherwise a failure would block a cadence of 10 seconds for a minute. What somebody chose stands."""
    await either.declare("work", **options)
    await either.client.schedules.create("s", "work", every("10s"))
    either.clock.advance("10s")
    await either.planner.step()
    (run,) = await either.client.list()
    assert run.plan_time == either.clock.now()
    seen = []
    for _ in range(3):
        await fail_once(either)
        rest = (await either.run(run.id)).run_at - either.clock.now()
        seen.append(rest.total_seconds())
        either.clock.advance(timedelta(seconds=max(10, *waits)))
    assert seen == waits


async def test_a_simulation_foretells_it(either: Harness) -> None:
    """Each attempt fails, and the next one begins after a quarter of the time to the next plan time."""
    await either.declare("work", max_attempts=3)
    await either.client.schedules.create("s", "work", every("16s"))
    report = await either.client.schedules.simulate("s", "24s", duration="0s", fail_every=1)
    either.clock.advance("16s")
    began = either.clock.now()
    await either.planner.step()
    (run,) = await either.client.list()
    for _ in range(3):
        await fail_once(either)
        if (run := await either.run(run.id)).state is RunState.SCHEDULED:
            either.clock.advance(run.run_at - either.clock.now())
    (event,) = report.events
    assert event.finished_at is not None
    assert run.finished_at is not None
    assert (event.attempt, event.finished_at - event.plan_time) == (3, timedelta(seconds=7))
    assert (run.state, run.finished_at - began) == (RunState.FAILED, timedelta(seconds=7))
