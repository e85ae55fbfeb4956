"""Tasks for several workers: published, taken by several workers, changed while they run, and published again.

Names of tests are its sentences.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rota.client.client import Order
from rota.core.states import RunState
from rota.errors import LeaseLost
from rota.testing import Harness
from rota.testing.harness.manual_worker import HandWorker
from tests.support.wait import PATIENCE, until
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


async def test_several_workers_execute_a_task_that_is_published_once(site: Site, tmp_path: Path) -> None:
    """In real processes: three workers, of which two get it; the change stream of another process tells."""
    for name in ("a", "b", "c"):
        site.worker(name)
    async with site.client.subscribe(["runs"]) as changes:
        await anext(changes)
        go = tmp_path / "go"
        task = await site.enqueue("share", key=KEY, until=str(go))
        await until(lambda: len(site.ledger.entries("begin")) == 2)
        assert await site.enqueue("share", key=KEY, until=str(go)) == task, "publishing is idempotent"
        first, second = site.ledger.entries("begin")
        assert first.pid != second.pid
        go.touch()
        done = await site.final(task)
        assert (done.state, len(site.ledger.entries("begin"))) == (RunState.SUCCEEDED, 2)
        async with asyncio.timeout(PATIENCE):
            while (hint := await anext(changes)).state is not RunState.SUCCEEDED:
                pass
        assert hint.id in {task, first.run_id, second.run_id}
    assert await site.enqueue("share", key=KEY, until=str(go)) != task, "the one before is not running any more"


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


@pytest.mark.parametrize("outcome", ["failed", "succeeded"])
@pytest.mark.parametrize("clears", [True, False])
async def test_publishing_again_clears_failed_or_successful_workers_if_it_is_configured(
    harness: Harness, outcome: str, *, clears: bool
) -> None:
    await harness.declare(
        "task",
        unique={"fields": ["key"], "clear": [outcome] if clears else []},
        replicas={"count": 2, "allowed_failures": 1},
        max_attempts=1,
    )
    task = await publish(harness)
    first = await harness.worker("a").claim()
    await (first.fail() if outcome == "failed" else first.finish())
    await conduct(harness)
    assert await publish(harness) == task
    workers = await taken(harness, "a", "b")
    assert [len(worker.claims) for worker in workers.values()] == [int(clears), 1], "whoever is cleared may try again"
    if not clears:
        return
    for worker in workers.values():
        await worker.finish()
    await conduct(harness)
    assert await harness.state(task) is RunState.SUCCEEDED


async def test_retries_happen_only_locally_and_then_the_worker_reports_its_failure(harness: Harness) -> None:
    """The number of retries is the option's; another worker sees one attempt."""
    calls: list[str] = []

    @harness.app.job(name="task", local_retries=2, max_attempts=1)
    async def task(key: str) -> None:
        calls.append(key)
        raise ConnectionError("not yet")

    await harness.store.save_jobs(harness.app.registry.definitions())
    published = await publish(harness)
    await harness.drain()
    assert (calls, await harness.state(published)) == ([KEY] * 3, RunState.FAILED)
    assert len(await harness.attempts(published)) == 1


async def test_the_highest_priority_is_taken_first_and_then_those_that_name_the_worker(harness: Harness) -> None:
    """Of tasks that were published at the same instant; an older one comes before one that names the worker."""
    await harness.declare("task", queue="published")
    old = await publish(harness)
    harness.clock.advance(timedelta(seconds=1))
    anyone, named = await publish(harness), await publish(harness, only_workers=["a"])
    high = await publish(harness, priority=10)
    begun = []
    for _ in range(4):
        worker = await harness.worker("a").claim()
        begun += list(worker.claims)
        await worker.finish()
    assert begun == [high, old, named, anyone]
