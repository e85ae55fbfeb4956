"""Tasks for several workers: published, taken by several workers, changed while they run, and published again.

Names of tests are its sentences.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rota.client.client import Order
from rota.core.states import RunState
from rota.errors import LeaseLost
from rota.testing import Harness
from rota.testing.harness.manual_worker import HandWorker
from tests.support.wait import until
from tests.system.site import Site

KEY = "unique-task"


async def publish(harness: Harness, **options: Any) -> str:
    """Publish the task under its key; return its id."""
    enqueued = await harness.client.enqueue(Order("task", {"key": KEY}, options))
    await conduct(harness)
    return enqueued.id


async def conduct(harness: Harness) -> None:
    await harness.promoter.step()
    while await harness.conductor.step() == timedelta(0):
        pass


async def taken(harness: Harness, *names: str) -> dict[str, HandWorker]:
    """Let each of these workers take what it may have."""
    return {name: await harness.worker(name).claim() for name in names}


async def test_a_task_is_taken_by_as_many_workers_as_it_accepts(harness: Harness) -> None:
    """concurrent_worker_cnt: 2"""
    await harness.declare("task", replicas=2)
    task = await publish(harness)
    workers = await taken(harness, "a", "b", "c")
    assert [len(worker.claims) for worker in workers.values()] == [1, 1, 0]
    for name in ("a", "b"):
        await workers[name].finish()
    await conduct(harness)
    assert await harness.state(task) is RunState.SUCCEEDED, "only successful workers are in the list"


async def test_a_worker_that_has_had_the_task_does_not_get_it_again(harness: Harness) -> None:
    await harness.declare("task", replicas=2)
    task = await publish(harness)
    first = await harness.worker("a").claim()
    await first.finish()
    await conduct(harness)
    assert (await harness.worker("a").claim()).claims == {}
    await (await harness.worker("b").claim()).finish()
    await conduct(harness)
    assert await harness.state(task) is RunState.SUCCEEDED


@pytest.mark.parametrize(("allowed", "state"), [(0, RunState.FAILED), (1, RunState.SUCCEEDED)])
async def test_more_failed_workers_than_allowed_fail_the_task(harness: Harness, allowed: int, state: RunState) -> None:
    """max_unexpected_retries"""
    await harness.declare("task", replicas={"count": 2, "allowed_failures": allowed}, max_attempts=1)
    task = await publish(harness)
    await (await harness.worker("a").claim()).fail()
    await conduct(harness)
    for name in ("b", "c"):
        worker = await harness.worker(name).claim()
        if worker.claims:
            await worker.finish()
        await conduct(harness)
    assert await harness.state(task) is state


async def test_only_named_workers_may_execute_it(harness: Harness) -> None:
    """specific_worker_ids"""
    await harness.declare("task", only_workers=["b"])
    await publish(harness)
    workers = await taken(harness, "a", "b")
    assert [len(worker.claims) for worker in workers.values()] == [0, 1]


async def test_if_the_changed_list_no_longer_allows_the_current_worker_its_task_ends(harness: Harness) -> None:
    await harness.declare("task", only_workers=["a"])
    task = await publish(harness)
    worker = await harness.worker("a").claim()
    await harness.client.restrict(task, ["b"])
    assert task in (await worker.heartbeat()).lost
    with pytest.raises(LeaseLost):
        await worker.finish()
    other = await harness.worker("b").claim()
    await other.finish()
    assert await harness.state(task) is RunState.SUCCEEDED


async def test_a_process_that_is_no_longer_allowed_stops_and_another_one_takes_over(site: Site) -> None:
    """In real processes: a coroutine that would run for an hour at its first worker."""
    site.worker("a")
    task = await site.enqueue("nap", {"only_workers": ["a"]}, seconds=[3_600.0, 0.0])
    first = await site.begun(task)
    site.worker("b")
    await site.client.restrict(task, ["b"])
    done = await site.final(task)
    second = await site.begun(task, 2)
    assert (done.state, done.worker_id and done.worker_id[0]) == (RunState.SUCCEEDED, "b")
    assert (second.fence > first.fence, second.pid != first.pid) == (True, True)
    await until(lambda: len(site.ledger.entries("stop", task)) == 1)


async def test_after_a_ping_timeout_another_worker_may_take_the_task(harness: Harness) -> None:
    await harness.declare("task")
    task = await publish(harness)
    silent = await harness.worker("a").claim()
    assert (await harness.worker("b").claim()).claims == {}, "not before its ping has expired"
    harness.clock.advance(harness.lease + timedelta(seconds=1))
    await harness.reaper.step()
    other = await harness.worker("b").claim()
    with pytest.raises(LeaseLost):
        await silent.finish()
    await other.finish()
    assert await harness.state(task) is RunState.SUCCEEDED


async def test_publishing_is_idempotent(harness: Harness) -> None:
    await harness.declare("task", unique=["key"])
    task = await publish(harness)
    assert await publish(harness) == task
    worker = await harness.worker().claim()
    assert await publish(harness) == task
    await worker.finish()
    assert await publish(harness) != task, "the one before is not running any more"


async def test_publishing_again_clears_failed_workers_if_it_is_configured(harness: Harness) -> None:
    await harness.declare(
        "task",
        unique={"fields": ["key"], "clear": ["failed"]},
        replicas={"count": 2, "allowed_failures": 1},
        max_attempts=1,
    )
    task = await publish(harness)
    await (await harness.worker("a").claim()).fail()
    await conduct(harness)
    assert await publish(harness) == task
    workers = await taken(harness, "a", "b")
    assert [len(worker.claims) for worker in workers.values()] == [1, 1], "a worker that failed may try again"
    for worker in workers.values():
        await worker.finish()
    await conduct(harness)
    assert await harness.state(task) is RunState.SUCCEEDED


async def test_the_highest_priority_is_taken_first(harness: Harness) -> None:
    await harness.declare("task")
    low, high = await publish(harness), await publish(harness, priority=10)
    worker = await harness.worker().claim()
    assert list(worker.claims) == [high]
    await worker.finish()
    assert await harness.state(low) is RunState.QUEUED
