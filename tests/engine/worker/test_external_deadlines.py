"""Test that timeouts and steps that must not be cancelled are kept, whatever an external worker does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rota import LeaseLost, Outcome, RunState
from rota.client.client import Order
from rota.core.external.external import Assignment
from rota.core.progress.steps import StepState
from rota.errors import Conflict, Invalid, NotAsked, UnknownOption
from rota.testing import Harness

SECOND = timedelta(seconds=1)
STEPS = [{"id": "prepare", "timeout": "5s"}, {"id": "execute"}, {"id": "finalize", "cancelable": False}]


async def taken(harness: Harness, *, overrides: dict[str, Any] | None = None, **options: Any) -> Assignment:
    harness.app.external("label", **options)
    await harness.store.save_jobs(harness.app.registry.definitions())
    await harness.client.enqueue(Order("label", {}, overrides or {}))
    (held,) = await harness.client.external.claim("scanner")
    return held


async def beats(harness: Harness, held: Assignment, seconds: int) -> None:
    """Let the worker say every second that it is alive, while the reaper looks on."""
    for _ in range(seconds):
        await harness.client.external.heartbeat(held.run_id, held.fence)
        harness.clock.advance(SECOND)
        await harness.reaper.step()


async def test_heartbeats_do_not_extend_a_run_beyond_its_timeout(either: Harness) -> None:
    held = await taken(either, timeout="2s", max_attempts=1)
    assert held.lease_until == either.clock.now() + 2 * SECOND
    beat = await either.client.external.heartbeat(held.run_id, held.fence)
    assert beat.lease_until == held.lease_until
    with pytest.raises(LeaseLost):
        await beats(either, held, 9)
    run = await either.run(held.run_id)
    assert run.error is not None
    assert (run.state, run.error.message, run.error.code) == (RunState.TIMED_OUT, "longer than 2s", "timed_out")
    assert either.clock.now() - held.lease_until <= 2 * SECOND


async def test_a_timeout_is_retried_by_the_policy_of_the_job(either: Harness) -> None:
    held = await taken(either, timeout="2s", max_attempts=2, backoff="10s")
    either.clock.advance(3 * SECOND)
    await either.reaper.step()
    run = await either.run(held.run_id)
    assert (run.state, run.attempt) == (RunState.SCHEDULED, 1)
    assert [attempt.outcome for attempt in await either.attempts(held.run_id)] == [Outcome.TIMED_OUT]
    with pytest.raises(LeaseLost):
        await either.client.external.complete(held.run_id, held.fence)
    assert await either.client.external.claim("scanner") == []
    either.clock.advance(11 * SECOND)
    await either.store.promote(10)
    (again,) = await either.client.external.claim("scanner")
    # Taking it away and claiming it again: the fence grows at both.
    assert (again.run_id, again.attempt, again.fence) == (held.run_id, 2, 3)


async def test_the_timeout_of_the_run_counts_before_that_of_the_job(either: Harness) -> None:
    held = await taken(either, timeout="1h", overrides={"timeout": "3s"})
    assert held.lease_until == either.clock.now() + 3 * SECOND


async def test_a_lost_worker_is_not_a_timeout(either: Harness) -> None:
    held = await taken(either, timeout="1h", max_attempts=1)
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    assert await either.state(held.run_id) is RunState.EXPIRED


@pytest.mark.parametrize("on_lost", ["retry", "fail"])
async def test_a_lease_that_ended_before_its_deadline_is_a_loss_however_late_the_reaper_comes(
    either: Harness, on_lost: str
) -> None:
    held = await taken(either, timeout=either.lease + SECOND, on_lost=on_lost, max_attempts=3)
    either.clock.advance(either.lease + 2 * SECOND)
    await either.reaper.step()
    assert [attempt.outcome for attempt in await either.attempts(held.run_id)] == [Outcome.LOST]
    run = await either.run(held.run_id)
    assert (run.state, run.fence) == (RunState.EXPIRED if on_lost == "fail" else RunState.QUEUED, held.fence + 1)


async def test_what_must_not_be_repeated_is_not_begun_again_after_its_deadline(either: Harness) -> None:
    held = await taken(either, timeout="2s", on_lost="fail", max_attempts=3, backoff="1s")
    either.clock.advance(3 * SECOND)
    await either.reaper.step()
    run = await either.run(held.run_id)
    assert (run.state, run.fence) == (RunState.TIMED_OUT, held.fence + 1)
    either.clock.advance(10 * SECOND)
    await either.store.promote(10)
    assert await either.client.external.claim("another") == []


async def test_heartbeats_do_not_extend_a_step_beyond_its_timeout(either: Harness) -> None:
    held = await taken(either, steps=STEPS, max_attempts=1)
    await beats(either, held, 3)
    await either.client.external.step(held.run_id, held.fence, "prepare", "running")
    await beats(either, held, 4)
    with pytest.raises(LeaseLost):
        await beats(either, held, 5)
    run = await either.run(held.run_id)
    assert run.error is not None
    assert (run.state, run.error.message) == (RunState.TIMED_OUT, "step 'prepare' took longer than 5s")


async def test_a_step_that_ends_in_time_gives_the_lease_its_length_again(either: Harness) -> None:
    held = await taken(either, steps=STEPS)
    external = either.client.external
    await external.step(held.run_id, held.fence, "prepare", "running")
    either.clock.advance(4 * SECOND)
    await external.step(held.run_id, held.fence, "prepare", "succeeded")
    either.clock.advance(either.lease - SECOND)
    await either.reaper.step()
    assert (await external.heartbeat(held.run_id, held.fence)).lease_until == either.clock.now() + either.lease


async def test_the_earlier_of_two_timeouts_counts(either: Harness) -> None:
    held = await taken(either, steps=STEPS, timeout="3s", max_attempts=1)
    await either.client.external.step(held.run_id, held.fence, "prepare", "running")
    either.clock.advance(4 * SECOND)
    await either.reaper.step()
    run = await either.run(held.run_id)
    assert run.error is not None
    assert run.error.message == "longer than 3s"


async def test_a_step_that_must_not_be_cancelled_is_finished_first(either: Harness) -> None:
    held = await taken(either, steps=STEPS, cancel_grace="5s")
    external, run = either.client.external, (held.run_id, held.fence)
    await external.step(*run, "finalize", "running")
    await either.cancel(held.run_id)
    await beats(either, held, 20)
    assert not (await external.heartbeat(*run)).cancelling
    with pytest.raises(NotAsked):
        await external.cancelled(*run)
    assert await external.step(*run, "finalize", "succeeded", result=1) is StepState.SUCCEEDED
    assert (await external.heartbeat(*run)).cancelling
    await beats(either, held, 4)
    assert await external.cancelled(*run) is RunState.CANCELLED


async def test_the_grace_begins_when_that_step_has_ended(either: Harness) -> None:
    held = await taken(either, steps=STEPS, cancel_grace="5s")
    external, run = either.client.external, (held.run_id, held.fence)
    await external.step(*run, "finalize", "running")
    await either.cancel(held.run_id)
    await beats(either, held, 20)
    await external.step(*run, "finalize", "succeeded")
    with pytest.raises(LeaseLost):
        await beats(either, held, 7)
    assert await either.state(held.run_id) is RunState.CANCELLED


async def test_such_a_step_does_not_begin_after_a_cancel(either: Harness) -> None:
    held = await taken(either, steps=STEPS)
    await either.cancel(held.run_id)
    with pytest.raises(Conflict, match="asked to stop before step 'finalize'"):
        await either.client.external.step(held.run_id, held.fence, "finalize", "running")
    (*_, finalize) = await either.client.steps(held.run_id)
    assert finalize.state is StepState.PENDING
    assert (await either.client.external.heartbeat(held.run_id, held.fence)).cancelling


async def test_a_repeated_report_of_a_step_changes_nothing(either: Harness) -> None:
    held = await taken(either, steps=STEPS)
    external, run = either.client.external, (held.run_id, held.fence)
    for _ in range(3):
        await external.step(*run, "finalize", "running")
    await either.cancel(held.run_id)
    await external.step(*run, "finalize", "running")
    for _ in range(3):
        await external.step(*run, "finalize", "succeeded")
    assert (await external.heartbeat(*run)).cancelling


@pytest.mark.parametrize("option", ["isolation", "cpu_limit", "memory_limit", "local_retries"])
async def test_what_nobody_could_enforce_is_refused(harness: Harness, option: str) -> None:
    with pytest.raises((UnknownOption, Invalid), match=option):
        harness.app.external("label", **{option: "process"})  # type: ignore[arg-type]


@pytest.mark.parametrize(("on_lost", "state"), [("fail", RunState.TIMED_OUT), ("retry", RunState.SCHEDULED)])
async def test_what_was_handed_over_is_not_begun_again_after_its_deadline(
    either: Harness, on_lost: Any, state: RunState
) -> None:
    """Whoever it was handed over to may still be at it: as after a loss, it is not done twice."""

    @either.app.job(name="pay", on_lost=on_lost, max_attempts=3, backoff="10s")
    async def pay() -> None: ...

    run = (await either.client.enqueue(Order("pay", {}))).id
    hand = await either.worker("a").claim()
    await hand.wait_for_external("2s", run=run)
    either.clock.advance(3 * SECOND)
    await either.reaper.step()
    assert await either.state(run) is state
    with pytest.raises(LeaseLost):
        await either.client.external.complete(run, hand.fence(run))


async def test_a_part_of_a_pipeline_has_the_deadlines_of_its_job(either: Harness) -> None:
    client = either.client
    await client.data_jobs.create("label", "external", timeout="2s", steps=["prepare", "execute"])
    await client.data_jobs.create("tell", "external")
    parts = [{"step": job, "job": job} for job in ("label", "tell")]
    await client.data_jobs.create("publish", pipeline=parts, max_attempts=2, backoff="1s")
    run = await client.enqueue(Order("publish", {}))
    for attempt in (1, 2):
        (held,) = await client.external.claim("scanner")
        assert (held.attempt, held.job) == (attempt, "label")
        either.clock.advance(3 * SECOND)
        await either.reaper.step()
        either.clock.advance(10 * SECOND)
        await either.store.promote(10)
    ended = await either.run(run.id)
    assert (ended.state, [one.outcome for one in await either.attempts(run.id)]) == (
        RunState.TIMED_OUT,
        [Outcome.TIMED_OUT, Outcome.TIMED_OUT],
    )
    assert ended.error is not None
    assert ended.error.message == "longer than 2s"
