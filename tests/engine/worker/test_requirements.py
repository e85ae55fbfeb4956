"""Test runs with requirements: only workers that meet them claim the run, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota import Retry, cron
from rota.client.client import Order
from rota.core.states import RunState
from rota.core.workers.requirements import Requirements
from rota.errors import Invalid, LeaseLost, RunIsFinal
from rota.store import open_database
from rota.store.databases.database import Tx
from rota.store.workers import requirements
from rota.testing import Harness
from tests.support.clock import MINUTE, SECOND
from tests.support.runs.real_worker import Working
from tests.support.wait import until

Start = Callable[..., Awaitable[Working]]


async def holds(harness: Harness) -> list[int]:
    async def body(tx: Tx) -> list[int]:
        return [row[0] for row in await tx.fetch_sql("select hold from rota_ready order by run_id")]

    return await harness.store.database.read(body)


async def taken(harness: Harness, name: str, **about: Any) -> list[str]:
    """Return what a worker of that name claims of up to ten runs."""
    return list((await harness.worker(name, **about).claim(10)).claims)


async def test_only_the_workers_that_it_names_get_a_run(either: Harness) -> None:
    run = await either.enqueue("train", {"only_workers": ["gpu-1", "gpu-2"]})
    assert await taken(either, "web-1") == []
    assert await taken(either, "gpu-2") == [run.id]


async def test_all_labels_must_be_met(either: Harness) -> None:
    await either.declare("train", labels=["gpu", "zone=eu"])
    run = await either.enqueue("train")
    assert await taken(either, "a", labels=["gpu"]) == []
    assert await taken(either, "b", labels=["gpu", "zone=us"]) == []
    assert await taken(either, "c", labels=["zone=eu", "ssd", "gpu"]) == [run.id]


async def test_an_older_version_of_the_application_does_not_get_it(either: Harness) -> None:
    run = await either.enqueue("train", {"min_worker_version": "1.10"})
    assert await taken(either, "old", version="1.9.3") == []
    assert await taken(either, "new", version="1.10") == [run.id]


async def test_an_ordinary_run_is_untouched_by_the_needs_of_others(either: Harness) -> None:
    await either.enqueue("train", {"only_workers": ["gpu-1"]})
    plain = await either.enqueue("plain")
    assert await holds(either) == [6, 0]
    assert await taken(either, "web-1") == [plain.id]


async def test_by_priority_then_the_oldest_then_those_that_name_the_worker(either: Harness) -> None:
    oldest = await either.enqueue("work", {"labels": ["gpu"]})
    either.clock.advance(SECOND)
    open_to_many = await either.enqueue("work", {"labels": ["gpu"]})
    named = await either.enqueue("work", {"only_workers": ["gpu-1"]})
    either.clock.advance(SECOND)
    first = await either.enqueue("work", {"labels": ["gpu"], "priority": 5})
    worker = either.worker("gpu-1", labels=["gpu"])
    for expected in (first, oldest, named, open_to_many):
        await worker.claim(1)
        assert list(worker.claims)[-1] == expected.id


async def test_no_more_than_free_slots_are_taken(either: Harness) -> None:
    for _ in range(3):
        await either.enqueue("work", {"labels": ["gpu"]})
    assert len((await either.worker("a", labels=["gpu"]).claim(2)).claims) == 2


async def test_until_its_time_has_come_nobody_gets_it(either: Harness) -> None:
    run = await either.enqueue("train", {"only_workers": ["gpu-1"], "delay": "10m"})
    assert await holds(either) == [7]
    assert await either.state(run) is RunState.SCHEDULED
    assert await taken(either, "gpu-1") == []
    either.clock.advance(10 * MINUTE)
    await either.promoter.step()
    assert await either.state(run) is RunState.QUEUED
    assert await taken(either, "web-1") == []
    assert await taken(either, "gpu-1") == [run.id]


async def test_a_run_that_is_tried_again_needs_the_same(either: Harness) -> None:
    run = await either.enqueue("train", {"only_workers": ["gpu-1"]})
    await (await either.worker("gpu-1").claim()).fail(run, Retry(after=SECOND))
    assert await holds(either) == [7]
    either.clock.advance(2 * SECOND)
    await either.promoter.step()
    assert await taken(either, "web-1") == []
    again = await either.worker("gpu-1").claim()
    await again.hand_back(run)
    assert await holds(either) == [6]
    await either.worker("gpu-1").claim()
    either.clock.advance(either.lease + SECOND)
    await either.reaper.step()
    assert await taken(either, "web-1") == []
    assert await taken(either, "gpu-1") == [run.id]


async def test_two_lost_attempts_make_a_suspect_of_it_too(either: Harness) -> None:
    await either.declare("train", max_attempts=9, only_workers=["gpu-1"])
    await either.enqueue("train")
    for _ in range(2):
        assert len((await either.worker("gpu-1").claim()).claims) == 1
        either.clock.advance(either.lease + SECOND)
        await either.reaper.step()
    (claim,) = (await either.worker("gpu-1").claim()).claims.values()
    assert claim.suspect


async def test_a_retry_by_hand_needs_the_same(either: Harness) -> None:
    run = await either.enqueue("train", {"only_workers": ["gpu-1"], "max_attempts": 1})
    await (await either.worker("gpu-1").claim()).fail(run)
    again = await either.client.retry(run.id)
    assert await taken(either, "web-1") == []
    assert await taken(either, "gpu-1") == [again.id]


async def test_paused_jobs_and_queues_are_left_alone(either: Harness) -> None:
    run = await either.enqueue("train", {"only_workers": ["gpu-1"]})
    await either.client.pause_job("train")
    assert await taken(either, "gpu-1") == []
    await either.client.resume_job("train")
    await either.client.pause_queue("default")
    assert await taken(either, "gpu-1") == []
    await either.client.resume_queue("default")
    assert await taken(either, "gpu-1") == [run.id]


async def test_under_limits_needs_are_kept_too(either: Harness) -> None:
    await either.declare("train", max_concurrency=1, labels=["gpu"])
    run, other = await either.enqueue("train"), await either.enqueue("train")
    assert await holds(either) == [2, 2]
    assert await taken(either, "web-1") == []
    worker = await either.worker("gpu-1", labels=["gpu"]).claim(5)
    assert list(worker.claims) == [run.id]
    await worker.finish(run)
    assert await taken(either, "web-1") == []
    assert await taken(either, "gpu-2", labels=["gpu"]) == [other.id]


async def test_under_one_limit_each_worker_gets_what_it_may_have(either: Harness) -> None:
    await either.declare("train", max_concurrency=5)
    theirs = await either.enqueue("train", {"only_workers": ["gpu-2"]})
    mine = await either.enqueue("train", {"only_workers": ["gpu-1"]})
    assert await taken(either, "gpu-1") == [mine.id]
    assert await taken(either, "gpu-2") == [theirs.id]


async def test_runs_of_schedules_need_what_their_job_needs(either: Harness) -> None:
    await either.declare("train", only_workers=["gpu-1"])
    await either.client.schedules.create("hourly", "train", cron("0 * * * *"))
    either.clock.advance(61 * MINUTE)
    await either.planner.step()
    assert await holds(either) == [6]
    assert await taken(either, "web-1") == []
    assert len(await taken(either, "gpu-1")) == 1


async def test_a_run_that_waited_for_another_needs_the_same(either: Harness) -> None:
    await either.declare("train", only_workers=["gpu-1"])
    await either.client.schedules.create("hourly", "train", cron("0 * * * *"), overlap="queue_all")
    either.clock.advance(61 * MINUTE)
    await either.planner.step()
    first = await either.worker("gpu-1").claim()
    either.clock.advance(60 * MINUTE)
    await first.heartbeat()
    await either.planner.step()
    assert await holds(either) == [3]
    await first.finish()
    assert await holds(either) == [6]
    assert await taken(either, "web-1") == []


async def test_replaced_by_its_key_a_run_needs_what_the_new_one_needs(either: Harness) -> None:
    replacing = {"key": "k", "unique": {"on_conflict": "replace"}}
    run = await either.enqueue("train", {**replacing, "only_workers": ["gpu-1"]})
    await either.enqueue("train", {**replacing, "only_workers": ["gpu-2"]})
    assert await taken(either, "gpu-1") == []
    await either.enqueue("train", {**replacing, "delay": "1m", "only_workers": ["gpu-2"]})
    assert await holds(either) == [7]
    await either.enqueue("train", replacing)
    assert await holds(either) == [0]
    assert await taken(either, "web-1") == [run.id]


async def test_an_enqueue_repeated_after_an_unknown_outcome_is_one_run(either: Harness) -> None:
    await either.declare("train", only_workers=["gpu-1"])
    prepared = await either.client.prepare(Order("train", {}))
    first = await either.store.enqueue([prepared])
    assert await either.store.enqueue([prepared]) == first
    assert await holds(either) == [6]


async def test_an_explanation_says_that_nobody_meets_its_needs(either: Harness) -> None:
    run = await either.enqueue("train", {"only_workers": ["gpu-1"], "labels": ["gpu"]})
    await either.worker("web-1").heartbeat()
    told = await either.client.explain(run.id)
    assert told.words == ("No live worker meets its requirements: only gpu-1, label gpu.",)
    await either.worker("gpu-1", labels=["gpu"]).heartbeat()
    assert (await either.client.explain(run.id)).words == ("Nothing holds it back: the next free worker takes it.",)


async def test_workers_say_their_labels_and_their_version(either: Harness) -> None:
    await either.worker("gpu-1", labels=["zone=eu", "gpu"], version="1.4").heartbeat()
    (worker,) = await either.client.workers.list()
    assert (worker.labels, worker.app_version) == (("gpu", "zone=eu"), "1.4")


async def test_a_real_worker_takes_what_it_may_have(either: Harness, working: Start) -> None:
    done: list[str] = []

    @either.app.job(name="train")
    async def train(which: str) -> None:
        done.append(which)

    await either.store.save_jobs(either.app.registry.definitions())
    for which, name in (("mine", "real"), ("theirs", "somebody")):
        await either.enqueue("train", {"only_workers": [name]}, which=which)
    worker = await working(either, concurrency=1)
    await until(lambda: done == ["mine"])
    await worker.idle()
    assert await holds(either) == [6]


# Restrict


async def test_a_run_that_waits_is_restricted(either: Harness) -> None:
    run = await either.enqueue("train")
    await either.client.restrict(run.id, ["gpu-1"], actor="ops")
    assert await taken(either, "web-1") == []
    await either.client.restrict(run.id, ["gpu-2"])
    assert await taken(either, "gpu-1") == []
    await either.client.restrict(run.id, None)
    assert await holds(either) == [0]
    assert await taken(either, "web-1") == [run.id]
    acts = [(event.type, event.actor) for event in await either.client.events(run.id)]
    assert ("restricted", "ops") in acts


async def test_a_worker_that_may_not_have_it_any_more_loses_it(either: Harness) -> None:
    run = await either.enqueue("train")
    holder = await either.worker("web-1").claim()
    await either.client.restrict(run.id, ["gpu-1"])
    assert (await either.run(run)).attempt == 0
    assert (await holder.heartbeat()).lost == {run.id}
    with pytest.raises(LeaseLost):
        await holder.finish(run)
    other = await either.worker("gpu-1").claim()
    assert other.fence(run) > holder.fence(run) + 1
    await other.finish(run)
    assert await either.state(run) is RunState.SUCCEEDED
    assert [attempt.outcome for attempt in await either.attempts(run)] == ["handed_back", "succeeded"]


async def test_a_worker_that_still_may_have_it_keeps_it(either: Harness) -> None:
    run = await either.enqueue("train")
    holder = await either.worker("gpu-1").claim()
    await either.client.restrict(run.id, ["gpu-1", "gpu-2"])
    assert (await holder.heartbeat()).lost == set()
    await holder.hand_back(run)
    assert await taken(either, "web-1") == []


async def test_restricting_twice_changes_nothing_more(either: Harness) -> None:
    run = await either.enqueue("train")
    for _ in range(2):
        await either.client.restrict(run.id, ["gpu-1"])
    assert [event.type for event in await either.client.events(run.id)] == ["created", "restricted"]


async def test_one_that_is_asked_to_stop_is_left_to_its_worker(either: Harness) -> None:
    run = await either.enqueue("train")
    holder = await either.worker("web-1").claim()
    await either.cancel(run)
    await either.client.restrict(run.id, ["gpu-1"])
    await holder.cancelled(run)
    assert await either.state(run) is RunState.CANCELLED


async def test_what_is_over_is_not_restricted(either: Harness) -> None:
    run = await either.enqueue("train")
    await (await either.worker().claim()).finish(run)
    with pytest.raises(RunIsFinal):
        await either.client.restrict(run.id, ["gpu-1"])
    with pytest.raises(Invalid):
        await either.client.restrict(run.id, [])


async def test_a_job_declared_anew_with_other_workers_takes_its_runs_along(either: Harness) -> None:
    await either.declare("train", only_workers=["gpu-1"])
    held, waiting = await either.enqueue("train"), await either.enqueue("train")
    own = await either.enqueue("train", {"only_workers": ["gpu-3"]})
    holder = await either.worker("gpu-1").claim(1)
    assert list(holder.claims) == [held.id]
    await either.declare("train", version=2, only_workers=["gpu-2"])
    assert (await holder.heartbeat()).lost == {held.id}
    assert await taken(either, "gpu-1") == []
    assert set(await taken(either, "gpu-2")) == {held.id, waiting.id}
    assert await taken(either, "gpu-3") == [own.id]


async def test_a_job_that_needs_nothing_any_more_is_for_everybody(either: Harness) -> None:
    await either.declare("train", only_workers=["gpu-1"])
    run = await either.enqueue("train")
    await either.declare("train", version=2)
    assert await holds(either) == [0]
    assert await taken(either, "web-1") == [run.id]


async def test_needs_that_nobody_has_any_more_are_pruned_once_there_are_many(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await either.declare("work")
    for name in ("a", "b", "c", "d"):
        await either.enqueue("work", {"only_workers": [name]})
    await (await either.worker("a").claim()).finish()
    await either.worker("b").claim()  # holds it
    await either.janitor.step()
    assert len(await either.store.known_requirements()) == 4
    monkeypatch.setattr(requirements, "_MANY", 3)
    either.clock.advance(61 * MINUTE)
    await either.janitor.step()
    assert sorted(one.only_workers[0] for one in (await either.store.known_requirements()).values()) == ["b", "c", "d"]
    await either.enqueue("work", {"only_workers": ["a"]})
    assert await taken(either, "a")


async def test_an_enqueue_keeps_the_needs_of_its_runs(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is forced: it has looked for them, and its runs are not there yet, while they are pruned; and it
    comes while they are being pruned."""
    monkeypatch.setattr(requirements, "_MANY", 0)
    wanted = Requirements(only_workers=("a",))
    async with Harness(url=postgres_url) as harness:
        database, other = harness.store.database, open_database(postgres_url)
        await database.transact(lambda tx: requirements.make(tx, [wanted]))

        async def enqueues(tx: Tx) -> int:
            await requirements.make(tx, [wanted])
            return await other.transact(requirements.drop_unused)

        assert await database.transact(enqueues) == 0
        assert len(await harness.store.known_requirements()) == 1

        async def prunes(tx: Tx) -> asyncio.Task[None]:
            assert await requirements.drop_unused(tx) == 1
            waiting = asyncio.create_task(other.transact(lambda tx: requirements.make(tx, [wanted])))
            await asyncio.wait([waiting], timeout=0.1)
            assert not waiting.done()
            return waiting

        await (await database.transact(prunes))
        assert len(await harness.store.known_requirements()) == 1
        await other.close()
