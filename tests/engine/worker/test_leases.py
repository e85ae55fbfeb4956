"""Test leases: who may write for a run, what a lost lease costs, and that stale writes are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from rota import Conflict, LeaseLost, Outcome, Rota, RunState, Snooze
from rota.core.runs.run import Run
from rota.engine.engine import worker_info
from rota.errors import RunIsFinal
from rota.testing import HandWorker, Harness
from tests.support.runs.real_worker import SECOND

Say = Callable[[HandWorker], Awaitable[object]]

REPORTS: dict[str, Say] = {
    "finish": lambda worker: worker.finish(),
    "fail": lambda worker: worker.fail(),
    "snooze": lambda worker: worker.fail(error=Snooze("1s")),
    "time out": lambda worker: worker.time_out(),
    "cancelled": lambda worker: worker.cancelled(),
    "hand back": lambda worker: worker.hand_back(),
}
reports = pytest.mark.parametrize("say", REPORTS.values(), ids=REPORTS)


async def lose(harness: Harness) -> None:
    harness.clock.advance(harness.lease + SECOND)
    await harness.reaper.step()


async def test_a_lost_lease_is_queued_again_at_once_with_its_attempt_spent(either: Harness) -> None:
    run = await either.enqueue("job")
    zombie = await either.worker().claim()
    await lose(either)
    lost = await either.run(run)
    assert (lost.state, lost.attempt, lost.fence) == (RunState.QUEUED, 1, zombie.fence() + 1)
    heir = await either.worker().claim()
    assert heir.fence() > zombie.fence()
    await heir.finish(run)
    assert [attempt.outcome for attempt in await either.attempts(run)] == [Outcome.LOST, Outcome.SUCCEEDED]


async def test_a_lease_is_not_taken_away_before_it_expires(either: Harness) -> None:
    run = await either.enqueue("job")
    worker = await either.worker().claim()
    either.clock.advance(either.lease)
    await either.reaper.step()
    assert await either.state(run) is RunState.RUNNING
    await worker.heartbeat()
    either.clock.advance(either.lease)
    await either.reaper.step()
    assert await either.state(run) is RunState.RUNNING


async def test_without_an_attempt_left_it_expires(either: Harness) -> None:
    run = await either.enqueue("job", {"max_attempts": 2})
    for _ in range(2):
        await either.worker().claim()
        await lose(either)
    done = await either.run(run)
    assert (done.state, done.attempt) == (RunState.EXPIRED, 2)
    assert done.error is not None
    assert done.error.code == "stale_timeout"


async def test_at_most_once_means_never_again_after_a_lost_lease(either: Harness) -> None:
    await either.declare("payment", on_lost="fail", max_attempts=9)
    run = await either.enqueue("payment")
    zombie = await either.worker().claim()
    await lose(either)
    done = await either.run(run)
    assert (done.state, done.fence) == (RunState.EXPIRED, zombie.fence() + 1)
    assert done.error is not None
    assert done.error.code == "stale_timeout"
    assert (await either.worker().claim()).claims == {}


async def test_a_run_handed_back_costs_no_attempt(either: Harness) -> None:
    run = await either.enqueue("job", {"max_attempts": 1})
    for _ in range(3):
        worker = await either.worker().claim()
        await worker.hand_back(began=True)
        back = await either.run(run)
        assert (back.state, back.attempt) == (RunState.QUEUED, 0)
        assert back.fence > worker.fence()
    assert {attempt.outcome for attempt in await either.attempts(run)} == {Outcome.HANDED_BACK}


async def test_at_most_once_means_never_again_after_a_hand_back_that_had_begun(either: Harness) -> None:
    await either.declare("payment", on_lost="fail")
    untouched, begun = await either.enqueue("payment"), await either.enqueue("payment")
    worker = await either.worker().claim(2)
    await worker.hand_back(untouched, began=False)
    await worker.hand_back(begun, began=True)
    assert await either.state(untouched) is RunState.QUEUED
    assert await either.state(begun) is RunState.EXPIRED


@reports
async def test_a_report_under_an_old_fence_is_refused(either: Harness, say: Say) -> None:
    run = await either.enqueue("job")
    zombie = await either.worker("same-name").claim()
    await lose(either)
    with pytest.raises(LeaseLost):
        await say(zombie)
    heir = await either.worker("same-name").claim()
    before = await either.run(run)
    with pytest.raises(LeaseLost):
        await say(zombie)
    assert await either.run(run) == before
    await heir.finish(run)


async def test_a_heartbeat_under_an_old_fence_renews_nothing(either: Harness) -> None:
    run = await either.enqueue("job")
    zombie = await either.worker().claim()
    await lose(either)
    heir = await either.worker().claim()
    until = (await either.attempts(run))[-1].lease_until
    either.clock.advance("1s")
    assert (await zombie.heartbeat()).lost == {run.id}
    assert (await either.attempts(run))[-1].lease_until == until
    assert (await heir.heartbeat()).lost == set()


@reports
async def test_an_expired_lease_that_nobody_took_away_may_still_speak(harness: Harness, say: Say) -> None:
    await harness.enqueue("job")
    worker = await harness.worker().claim()
    harness.clock.advance("1d")
    assert (await worker.heartbeat()).lost == set()
    await say(worker)


@reports
async def test_final_is_final(either: Harness, say: Say) -> None:
    run = await either.enqueue("job")
    zombie = await either.worker().claim()
    await lose(either)
    await (await either.worker().claim()).finish(run, result="first")
    final = await either.run(run)
    with pytest.raises(LeaseLost):
        await say(zombie)
    with pytest.raises(RunIsFinal):
        await either.cancel(run)
    either.clock.advance("1d")
    await either.reaper.step()
    await either.promoter.step()
    assert await either.run(run) == final


async def test_a_finish_repeated_gets_the_first_answer(either: Harness) -> None:
    run = await either.enqueue("job")
    worker = await either.worker().claim()
    await worker.finish(result="first")
    first = await either.run(run)
    await worker.finish(result="second")
    assert await either.run(run) == first
    with pytest.raises(LeaseLost):
        await worker.fail()
    assert await either.run(run) == first


async def test_any_report_repeated_gets_the_first_answer(either: Harness) -> None:
    run = await either.enqueue("job")
    worker = await either.worker().claim()
    await worker.fail()
    first = await either.run(run)
    await worker.fail()
    assert await either.run(run) == first
    assert len(await either.attempts(run)) == 1


async def test_reaper_completion_and_cancel_racing_leave_one_end(either: Harness) -> None:
    runs = [await either.enqueue("job") for _ in range(8)]
    worker = await either.worker().claim(len(runs))
    either.clock.advance(either.lease + SECOND)
    racers: list[Awaitable[object]] = [either.reaper.step() for _ in range(3)]
    for run in runs:
        racers += [worker.finish(run), worker.fail(run), either.cancel(run)]
    answers = await asyncio.gather(*racers, return_exceptions=True)
    assert all(answer is None or isinstance(answer, timedelta | Run | Conflict) for answer in answers)
    for run in runs:
        seen = await either.run(run)
        fences = [attempt.fence for attempt in await either.attempts(run)]
        assert fences == sorted(set(fences))
        succeeded = [a for a in await either.attempts(run) if a.outcome is Outcome.SUCCEEDED]
        assert bool(succeeded) == (seen.state is RunState.SUCCEEDED)


async def test_the_same_name_thrice_is_three_workers(either: Harness) -> None:
    for _ in range(3):
        await either.enqueue("job")
    namesakes = [await either.worker("node-1").claim() for _ in range(3)]
    assert len({worker.id for worker in namesakes}) == 3
    first, second, third = namesakes
    either.clock.advance(either.lease)
    assert (await second.heartbeat()).lost == set()
    either.clock.advance("1s")
    await either.reaper.step()
    assert [await either.state(run) for run in [*first.claims, *second.claims, *third.claims]] == [
        RunState.QUEUED,
        RunState.RUNNING,
        RunState.QUEUED,
    ]


def test_a_worker_restarted_under_its_name_is_somebody_else() -> None:
    app = Rota("sqlite:///unused.db")
    boots = [worker_info(app.registry, app.config, "node-1", None) for _ in range(3)]
    assert len({boot.id for boot in boots}) == 3
    assert {boot.name for boot in boots} == {"node-1"}
