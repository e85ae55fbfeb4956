"""Test handlers that hand their run over to an external party: no lease, no slot, the same fence, a timeout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from rota import Context, LeaseLost, Outcome, RunFilter, RunState, SyncContext, every
from rota.client.client import Order
from rota.core.progress.steps import StepState
from rota.core.runs.outcome import Report, Wait
from rota.errors import AlreadyReported, Invalid, UnknownRun
from rota.store import new_id
from rota.store.runs import cancel, waits
from rota.testing import Harness
from rota.testing.harness.manual_worker import HandWorker
from tests.engine.worker.test_external import ENDING, NOTING, VERBS, everything
from tests.support.jobs import isolated_jobs
from tests.support.runs.audit_trails import repeat_everything, trail, words
from tests.support.runs.real_worker import Working
from tests.support.schedules.ledger_oracle import rows

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)

Start = Callable[..., Awaitable[Working]]


async def waiting(harness: Harness, step: str | None = None, **options: Any) -> tuple[str, int, HandWorker]:
    """A run that was handed over for an hour."""
    await harness.declare("ask", **options)
    run = await harness.enqueue("ask")
    worker = await harness.worker("a").claim()
    await worker.wait_for_external("1h", step=step)
    return run.id, worker.fence(), worker


async def test_it_waits_without_a_lease_under_the_same_fence(either: Harness) -> None:
    run_id, fence, worker = await waiting(either)
    run = await either.run(run_id)
    assert (run.state, run.fence, run.attempt, run.worker_id) == (RunState.WAITING, fence, 1, worker.id)
    assert (run.wait_since, run.wait_until) == (either.clock.now(), either.clock.now() + HOUR)
    assert await rows(either.store, "select run_id from rota_lease") == []
    assert (await worker.heartbeat()).lost == {run_id}
    either.clock.advance(30 * MINUTE)
    await either.reaper.step()
    assert await either.state(run_id) is RunState.WAITING
    (attempt,) = await either.attempts(run_id)
    assert (attempt.no, attempt.outcome, attempt.lease_until) == (1, None, run.wait_until)


async def test_whoever_has_its_fence_ends_it(either: Harness) -> None:
    run_id, fence, _ = await waiting(either)
    either.clock.advance(MINUTE)
    assert await either.client.external.complete(run_id, fence, "yes") is RunState.SUCCEEDED
    run = await either.run(run_id)
    assert (run.state, run.result, run.fence, run.attempt) == (RunState.SUCCEEDED, "yes", fence, 1)
    assert run.started_at == either.clock.now() - MINUTE
    told = await trail(either.store, run_id)
    assert words(told) == [
        "created → queued", "claimed → running", "handed_over → waiting", "succeeded → succeeded",
    ]  # fmt: skip
    assert told[2].details["until_at"] == either.clock.now() - MINUTE + HOUR
    assert await either.client.external.complete(run_id, fence) is RunState.SUCCEEDED
    with pytest.raises(AlreadyReported):
        await either.client.external.fail(run_id, fence, "no")


async def test_a_failure_is_the_end_of_an_attempt(either: Harness) -> None:
    run_id, fence, worker = await waiting(either, backoff=["10m"])
    assert await either.client.external.fail(run_id, fence, "no ink") is RunState.SCHEDULED
    run = await either.run(run_id)
    assert (run.state, run.attempt, run.run_at) == (RunState.SCHEDULED, 1, either.clock.now() + 10 * MINUTE)
    either.clock.advance(10 * MINUTE)
    await either.promoter.step()
    await worker.claim()
    assert (worker.claims[run_id].attempt, worker.fence()) == (2, fence + 1)
    told = await trail(either.store, run_id)
    assert [(event.type, event.actor) for event in told[2:4]] == [("handed_over", worker.id), ("failed", "external")]


async def test_notes_are_taken_while_it_waits(either: Harness) -> None:
    run_id, fence, _ = await waiting(either)
    external = either.client.external
    beat = await external.progress(run_id, fence, 50, "half")
    assert (beat.cancelling, beat.lease_until) == (False, either.clock.now() + HOUR)
    await external.logs(run_id, fence, ["a line"])
    await external.step(run_id, fence, "look", "running")
    (look,) = await either.client.steps(run_id)
    assert look.state is StepState.RUNNING
    said = (await either.run(run_id)).progress
    assert said is not None
    assert said.percentage == 50
    assert [line.text for line in await either.client.logs(run_id)] == ["a line"]


@pytest.mark.parametrize("verb", list(VERBS))
async def test_another_fence_writes_nothing(either: Harness, verb: str) -> None:
    run_id, fence, _ = await waiting(either)
    before = await everything(either)
    for wrong in (fence + 1, fence + 7):
        with pytest.raises(LeaseLost):
            await VERBS[verb](either, run_id, wrong)
    with pytest.raises(UnknownRun):
        await VERBS[verb](either, new_id(), fence)
    assert await everything(either) == before


@pytest.mark.parametrize("verb", list(VERBS))
async def test_once_its_time_was_up_nothing_is_written(either: Harness, verb: str) -> None:
    run_id, fence, _ = await waiting(either, max_attempts=1)
    either.clock.advance(HOUR + SECOND)
    await either.reaper.step()
    assert await either.state(run_id) is RunState.TIMED_OUT
    before = await everything(either)
    with pytest.raises(LeaseLost):
        await VERBS[verb](either, run_id, fence)
    assert await everything(either) == before


async def test_past_its_deadline_it_has_timed_out_and_is_tried_again(either: Harness) -> None:
    run_id, fence, _ = await waiting(either, backoff=["10m"], max_attempts=2)
    either.clock.advance(HOUR + SECOND)
    await either.reaper.step()
    run = await either.run(run_id)
    assert (run.state, run.attempt, run.run_at) == (RunState.SCHEDULED, 1, either.clock.now() + 10 * MINUTE)
    assert run.error is not None
    assert (run.error.code, run.error.message) == ("timed_out", "nobody outside ended it within 1h")
    assert [attempt.outcome for attempt in await either.attempts(run_id)] == [Outcome.TIMED_OUT]
    told = await trail(either.store, run_id)
    assert [(event.type, event.actor) for event in told[3:]] == [("timed_out", "reaper")]
    either.clock.advance(10 * MINUTE)
    await either.promoter.step()
    worker = await either.worker("b").claim()
    assert worker.fence() == fence + 2  # it grew when the reaper took it away, and at the claim
    await worker.wait_for_external("1h")
    either.clock.advance(HOUR + SECOND)
    await either.reaper.step()
    assert await either.state(run_id) is RunState.TIMED_OUT


async def test_the_policy_of_the_run_counts(either: Harness) -> None:
    await either.declare("ask", max_attempts=9)
    run = await either.enqueue("ask", {"max_attempts": 1})
    worker = await either.worker("a").claim()
    await worker.wait_for_external("1h")
    either.clock.advance(HOUR + SECOND)
    await either.reaper.step()
    assert await either.state(run) is RunState.TIMED_OUT


async def test_a_cancel_is_told_and_has_its_grace(either: Harness) -> None:
    run_id, fence, _ = await waiting(either, cancel_grace="30s")
    assert (await either.cancel(run_id)).state is RunState.CANCELLING
    assert (await either.cancel(run_id)).state is RunState.CANCELLING
    assert (await either.client.external.heartbeat(run_id, fence)).cancelling
    either.clock.advance(29 * SECOND)
    await either.reaper.step()
    assert await either.state(run_id) is RunState.CANCELLING
    either.clock.advance(2 * SECOND)
    await either.reaper.step()
    run = await either.run(run_id)
    assert (run.state, run.fence) == (RunState.CANCELLED, fence + 1)
    assert words(await trail(either.store, run_id))[2:] == [
        "handed_over → waiting", "cancel_asked → cancelling", "lost → cancelled",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "state"),
    [("complete", RunState.SUCCEEDED), ("fail", RunState.CANCELLED), ("cancelled", RunState.CANCELLED)],
)
async def test_while_it_is_asked_to_stop(either: Harness, verb: str, state: RunState) -> None:
    run_id, fence, _ = await waiting(either)
    await either.cancel(run_id)
    for note in NOTING.values():
        await note(either, run_id, fence)
    assert await ENDING[verb](either, run_id, fence) is state
    assert await ENDING[verb](either, run_id, fence) is state
    await trail(either.store, run_id)


async def test_one_that_was_asked_to_stop_is_not_handed_over(either: Harness) -> None:
    await either.declare("ask")
    run = await either.enqueue("ask")
    worker = await either.worker("a").claim()
    await either.cancel(run)
    await worker.wait_for_external("1h")
    assert await either.state(run) is RunState.CANCELLED
    await trail(either.store, run.id)


async def test_a_step_that_is_ended_outside(either: Harness) -> None:
    run_id, fence, _ = await waiting(either, step="approval")
    assert await either.client.external.complete(run_id, fence, {"by": "ann"}) is RunState.QUEUED
    run = await either.run(run_id)
    assert (run.state, run.attempt, run.result) == (RunState.QUEUED, 0, None)
    (approval,) = await either.client.steps(run_id)
    assert (approval.id, approval.state, approval.result) == ("approval", StepState.SUCCEEDED, {"by": "ann"})
    before = await everything(either)
    assert await either.client.external.complete(run_id, fence, {"by": "bob"}) is RunState.QUEUED
    with pytest.raises(AlreadyReported):
        await either.client.external.fail(run_id, fence, "no")
    assert await everything(either) == before
    worker = await either.worker("b").claim()
    assert (worker.claims[run_id].attempt, worker.fence()) == (1, fence + 1)
    await worker.finish()
    assert words(await trail(either.store, run_id)) == [
        "created → queued", "claimed → running", "handed_over → waiting", "step_ended → queued", "claimed → running",
        "succeeded → succeeded",
    ]  # fmt: skip


async def test_the_step_it_waits_for_may_be_ended_as_a_step(either: Harness) -> None:
    run_id, fence, _ = await waiting(either, step="approval")
    external = either.client.external
    assert await external.step(run_id, fence, "other", "succeeded") is StepState.SUCCEEDED
    assert await either.state(run_id) is RunState.WAITING
    assert await external.step(run_id, fence, "approval", "succeeded", result=1) is StepState.SUCCEEDED
    assert await either.state(run_id) is RunState.QUEUED
    assert await external.step(run_id, fence, "approval", "succeeded", result=1) is StepState.SUCCEEDED
    with pytest.raises(LeaseLost):
        await external.step(run_id, fence, "approval", "failed")


async def test_a_step_that_was_ended_before_the_hand_over_is_not_waited_for(either: Harness) -> None:
    await either.declare("ask")
    run = await either.enqueue("ask")
    worker = await either.worker("a").claim()
    await either.client.external.step(run.id, worker.fence(), "approval", "succeeded", result="quick")
    await worker.wait_for_external("1h", step="approval")
    assert await either.state(run) is RunState.QUEUED


async def test_a_step_that_fails_outside_ends_the_attempt(either: Harness) -> None:
    run_id, fence, _ = await waiting(either, step="approval", max_attempts=1)
    assert await either.client.external.fail(run_id, fence, "refused") is RunState.FAILED


async def test_while_it_is_asked_to_stop_the_end_of_a_step_is_its_end(either: Harness) -> None:
    run_id, fence, _ = await waiting(either, step="approval")
    await either.cancel(run_id)
    assert await either.client.external.complete(run_id, fence, 1) is RunState.CANCELLED
    (approval,) = await either.client.steps(run_id)
    assert approval.state is StepState.SUCCEEDED


async def test_everything_may_be_repeated(either: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    repeat_everything(either.store, monkeypatch)
    run_id, fence, _ = await waiting(either, step="approval")
    assert await either.client.external.complete(run_id, fence, 1) is RunState.QUEUED
    worker = await either.worker("b").claim()
    await worker.wait_for_external("1h")
    assert (await either.cancel(run_id)).state is RunState.CANCELLING
    assert await either.client.external.cancelled(run_id, worker.fence()) is RunState.CANCELLED
    await trail(either.store, run_id)


async def test_a_hand_over_repeated_after_its_end_was_accepted_is_answered_alike(either: Harness) -> None:
    run_id, fence, worker = await waiting(either)
    await either.client.external.complete(run_id, fence)
    await worker.wait_for_external("1h")
    assert await either.state(run_id) is RunState.SUCCEEDED


async def test_a_hand_over_of_a_lost_lease_is_refused(either: Harness) -> None:
    await either.declare("ask")
    run = await either.enqueue("ask")
    worker = await either.worker("a").claim()
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    with pytest.raises(LeaseLost):
        await worker.wait_for_external("1h")
    assert (await either.run(run)).attempt == 1
    assert await either.state(run) is RunState.QUEUED


async def test_it_keeps_its_slots_under_limits(either: Harness) -> None:
    run_id, fence, worker = await waiting(either, max_concurrency=1)
    other = await either.enqueue("ask")
    await either.reaper.step()  # which also tidies up
    await worker.claim()
    assert other.id not in worker.claims
    assert "1 of 1" in " ".join((await either.client.explain(other.id)).words)
    await either.client.external.complete(run_id, fence)
    await worker.claim()
    assert other.id in worker.claims


async def test_its_slots_come_back_with_its_deadline(either: Harness) -> None:
    run_id, _, worker = await waiting(either, max_concurrency=1, backoff=["10m"])
    other = await either.enqueue("ask")
    either.clock.advance(HOUR + SECOND)
    await either.reaper.step()
    await worker.claim()
    assert other.id in worker.claims
    assert await either.state(run_id) is RunState.SCHEDULED


async def test_the_oldest_gives_way_though_it_waits(either: Harness) -> None:
    run_id, _, _ = await waiting(either, limit={"max": 1, "when_full": "cancel_oldest"})
    await either.enqueue("ask")
    assert await either.state(run_id) is RunState.CANCELLING


async def test_a_schedule_sees_that_it_goes_on(either: Harness) -> None:
    await either.declare("ask")
    await either.client.schedules.create("often", "ask", every("1m"), overlap="skip")
    either.clock.advance(MINUTE)
    await either.planner.step()
    worker = await either.worker("a").claim()
    (run_id,) = worker.claims
    await worker.wait_for_external("1h")
    either.clock.advance(MINUTE)
    await either.planner.step()
    skipped = await either.client.list(RunFilter(states=(RunState.SKIPPED,)))
    assert [run.reason is not None and "overlap" in run.reason for run in skipped] == [True]
    await either.client.external.complete(run_id, worker.fence())
    either.clock.advance(MINUTE)
    await either.planner.step()
    assert len(await either.client.list(RunFilter(states=(RunState.QUEUED,)))) == 1


async def test_a_new_plan_time_may_cancel_it(either: Harness) -> None:
    await either.declare("ask")
    await either.client.schedules.create("often", "ask", every("1m"), overlap="cancel_previous")
    either.clock.advance(MINUTE)
    await either.planner.step()
    worker = await either.worker("a").claim()
    (run_id,) = worker.claims
    await worker.wait_for_external("1h")
    either.clock.advance(MINUTE)
    await either.planner.step()
    assert await either.state(run_id) is RunState.CANCELLING
    (follower,) = await either.client.list(RunFilter(states=(RunState.SCHEDULED,)))
    await either.client.external.cancelled(run_id, worker.fence())
    assert await either.state(follower.id) is RunState.QUEUED


async def test_everywhere_it_is_live(either: Harness) -> None:
    run_id, fence, _ = await waiting(either)
    client = either.client
    assert [run.id for run in await client.list(RunFilter(states=(RunState.WAITING,)))] == [run_id]
    assert [(queue.queue, queue.running) for queue in await client.queues()] == [("default", 1)]
    assert (await client.job_status("ask")).running == 1
    assert 'rota_queue_runs{queue="default",state="waiting"} 1' in await client.metrics()
    explained = await client.explain(run_id)
    assert explained.verdict == "waiting"
    assert f"under fence {fence}" in explained.words[1]
    assert "times out at" in explained.words[2]
    assert await client.prune() == 0
    assert (await client.cancel_many(RunFilter(job="ask"))).done == 1
    assert await either.state(run_id) is RunState.CANCELLING


async def test_a_job_that_is_cancelled_asks_it_to_stop(either: Harness) -> None:
    run_id, _, _ = await waiting(either)
    assert (await either.client.cancel_job("ask")).cancelled == 1
    assert await either.state(run_id) is RunState.CANCELLING


async def test_those_that_wait_for_it_go_on_when_it_ends(either: Harness) -> None:
    run_id, fence, _ = await waiting(either)
    other = (await either.client.enqueue(Order("ask", {}, {"delay": "0s"}))).id

    async def follow(tx: Any) -> None:
        await waits.follow(tx, [(other, run_id)])
        await tx.fetch_sql("update rota_ready set hold = 3 where run_id = :id", id=other)

    await either.store.database.transact(follow)
    assert await either.state(other) is RunState.SCHEDULED
    await either.client.external.complete(run_id, fence)
    assert await either.state(other) is RunState.QUEUED


async def test_a_policy_supersedes_it(either: Harness) -> None:
    run_id, _, _ = await waiting(either)
    state = await either.store.database.transact(lambda tx: cancel.give_way(tx, run_id, "room", "policy:limit"))
    assert state is RunState.CANCELLING


async def test_reports_of_one_batch(either: Harness) -> None:
    await either.declare("ask")
    first, second, third = [(await either.enqueue("ask")).id for _ in range(3)]
    worker = await either.worker("a").claim(3)
    fences = {id: worker.fence(id) for id in (first, second, third)}
    reported = await either.store.report([
        Report(first, fences[first], Outcome.SNOOZED, wait=Wait(1_000_000)),
        Report(second, fences[second], Outcome.SUCCEEDED),
        Report(third, fences[third] + 1, Outcome.SNOOZED, wait=Wait(1_000_000)),
    ])  # fmt: skip
    assert [report.run_id for report in reported.refused] == [third]
    assert await either.state(first) is RunState.WAITING


async def test_a_coroutine_hands_over_and_goes_on(either: Harness) -> None:
    begun: list[int] = []

    async def buy(ctx: Context) -> object:
        begun.append(ctx.fence)
        ctx.progress(10, "asked")
        try:
            answer = await ctx.wait_for_external("1h", step="approval")
        except Exception as error:  # a handler may be careful: this does not stop it from waiting
            raise AssertionError from error
        return {"answer": answer}

    either.app.job(buy)
    run = await either.enqueue("buy")
    await either.drain()
    assert await either.state(run) is RunState.WAITING
    said = (await either.run(run)).progress
    assert said is not None
    assert said.summary == "asked"
    assert {step.id: step.state for step in await either.client.steps(run.id)} == {"approval": StepState.RUNNING}
    await either.client.external.complete(run.id, begun[0], "yes")
    await either.drain()
    ended = await either.run(run)
    assert (ended.state, ended.result, ended.attempt) == (RunState.SUCCEEDED, {"answer": "yes"}, 1)
    assert begun == [1, 2]


async def test_without_a_step_it_never_returns(either: Harness) -> None:
    after: list[str] = []

    async def buy(ctx: Context) -> None:
        await ctx.wait_for_external("1h")
        after.append("it did")  # type: ignore[unreachable]

    either.app.job(buy)
    run = await either.enqueue("buy")
    await either.drain()
    assert await either.state(run) is RunState.WAITING
    assert await either.client.external.complete(run.id, 1, 7) is RunState.SUCCEEDED
    await either.drain()
    assert after == []


async def test_a_function_in_a_thread_hands_over(harness: Harness) -> None:
    def buy(ctx: SyncContext) -> object:
        return ctx.wait_for_external("1h", step="approval")

    harness.app.job(buy)
    run = await harness.enqueue("buy")
    await harness.drain()
    assert await harness.state(run) is RunState.WAITING
    await harness.client.external.complete(run.id, 1, [1])
    await harness.drain()
    assert (await harness.run(run)).result == [1]


@pytest.mark.parametrize("job", ["hand_over", "hand_over_plainly"])
async def test_a_child_process_hands_over(harness: Harness, job: str) -> None:
    harness.app.job(isolation="process", name=job)(getattr(isolated_jobs, job))
    run = await harness.enqueue(job)
    await harness.drain()
    waits = await harness.run(run)
    assert waits.state is RunState.WAITING
    assert waits.wait_until is not None
    assert waits.wait_since is not None
    assert waits.wait_until - waits.wait_since == 2 * HOUR
    await harness.client.external.complete(run.id, 1, "from outside")
    await harness.drain()
    assert (await harness.run(run)).result == "from outside"


async def test_local_retries_do_not_repeat_it(harness: Harness) -> None:
    calls: list[int] = []

    async def buy(ctx: Context) -> None:
        calls.append(1)
        await ctx.wait_for_external("1h")

    harness.app.job(local_retries=3)(buy)
    run = await harness.enqueue("buy")
    await harness.drain()
    assert (await harness.state(run), calls) == (RunState.WAITING, [1])


async def test_a_step_that_is_not_to_be_cancelled_does_not_shield_it(harness: Harness) -> None:
    async def buy(ctx: Context) -> object:
        return await ctx.wait_for_external("1h", step="approval")

    harness.app.job(steps=[{"id": "approval", "cancelable": False}])(buy)
    run = await harness.enqueue("buy")
    await harness.drain()
    await harness.cancel(run)
    harness.clock.advance(MINUTE)
    await harness.reaper.step()
    assert await harness.state(run) is RunState.CANCELLED


async def test_a_timeout_must_be_some_time(harness: Harness) -> None:
    async def buy(ctx: Context) -> None:
        await ctx.wait_for_external("0s")

    harness.app.job(max_attempts=1)(buy)
    run = await harness.enqueue("buy")
    await harness.drain()
    ended = await harness.run(run)
    assert ended.state is RunState.FAILED
    assert ended.error is not None
    assert "timeout" in ended.error.message


async def test_a_real_worker_frees_its_slot(harness: Harness, working: Start) -> None:
    async def buy(ctx: Context, n: int) -> None:
        if n == 1:
            await ctx.wait_for_external("1h")

    harness.app.job(buy)
    first, second = await harness.enqueue("buy", n=1), await harness.enqueue("buy", n=2)
    worker = await working(harness, concurrency=1)
    await worker.has_state(second, RunState.SUCCEEDED)
    await worker.has_state(first, RunState.WAITING)
    await worker.idle()
    assert 'rota_handed_over_total{job="buy",queue="default"} 1' in await harness.client.metrics()


async def test_a_hand_worker_refuses_nonsense(harness: Harness) -> None:
    await harness.enqueue("ask")
    worker = await harness.worker("a").claim()
    with pytest.raises(Invalid):
        await worker.wait_for_external("0s")
