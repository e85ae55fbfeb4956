"""Test that backfilled runs obey requirements, replicas, pipelines, limits and keys like planned ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rota import cron
from rota.core.runs.run import Run, RunFilter
from rota.core.states import RunState
from rota.testing import Harness
from rota.testing.harness.manual_worker import HandWorker

HOURS = 4
S = RunState


async def conduct(harness: Harness) -> None:
    while await harness.conductor.step() == timedelta(0):
        pass


async def backfilled(harness: Harness, *, concurrency: int = 1, **options: Any) -> list[Run]:
    """Runs for the last hours, in order, of a schedule that was made a moment ago."""
    now = harness.clock.now()
    await harness.client.schedules.create("hourly", "train", cron("0 * * * *"), **options)
    done = await harness.client.schedules.backfill("hourly", now - timedelta(hours=HOURS), now, concurrency=concurrency)
    runs = {run.id: run for run in await harness.client.list(RunFilter(schedule="hourly"))}
    assert set(runs) == set(done.runs)
    return [runs[id] for id in done.runs]


async def taken(harness: Harness, name: str, **about: Any) -> HandWorker:
    worker = harness.worker(name, **about)
    await worker.heartbeat()
    return await worker.claim(10)


@pytest.mark.parametrize(
    ("requirements", "wrong", "right"),
    [
        ({"only_workers": ["gpu-1"]}, {"name": "web-1"}, {"name": "gpu-1"}),
        ({"labels": ["gpu"]}, {"name": "web-1", "labels": ["ssd"]}, {"name": "web-2", "labels": ["gpu"]}),
        ({"min_worker_version": "1.10"}, {"name": "a", "version": "1.9"}, {"name": "b", "version": "1.10"}),
    ],
)
async def test_only_workers_that_meet_their_needs_get_them(
    either: Harness, requirements: dict[str, Any], wrong: dict[str, Any], right: dict[str, Any]
) -> None:
    await either.declare("train", **requirements)
    first, second, *_ = await backfilled(either, concurrency=2)
    assert (await taken(either, **wrong)).claims == {}
    worker = await taken(either, **right)
    assert set(worker.claims) == {first.id, second.id}
    assert (await taken(either, **right)).claims == {}, "so many at once"


@pytest.mark.parametrize("quota", [None, 10])
async def test_several_workers_do_each_of_them_and_so_many_are_done_at_once(either: Harness, quota: int | None) -> None:
    if quota is not None:
        await either.client.quotas.update("tenant", "a", max_concurrency=quota, max_queued=0)
    await either.declare("train", replicas=2, labels=["gpu"])
    runs = await backfilled(either, concurrency=2, scopes=[("tenant", "a")])
    for first, second in (runs[:2], runs[2:4]):
        await conduct(either)
        assert [run.state for run in await stood(either, runs) if run.state is S.WAITING] == [S.WAITING] * 2
        assert (await taken(either, "web")).claims == {}
        for name in ("a", "b"):
            worker = await taken(either, name, labels=["gpu"])
            assert {(await either.run(id)).parent_id for id in worker.claims} == {first.id, second.id}
            for id in list(worker.claims):
                await worker.finish(id)
        await conduct(either)
        assert {await either.state(first.id), await either.state(second.id)} == {S.SUCCEEDED}


async def stood(harness: Harness, runs: list[Run]) -> list[Run]:
    return [await harness.run(run.id) for run in runs]


async def test_one_whose_turn_never_comes_leaves_it_to_the_next(either: Harness) -> None:
    await either.declare("train", replicas=1)
    first, second, third, *_ = await backfilled(either)
    await either.client.cancel(second.id)
    await conduct(either)
    assert [await either.state(run.id) for run in (first, second, third)] == [S.WAITING, S.CANCELLED, S.SCHEDULED]
    worker = await taken(either, "a")
    await worker.finish()
    await conduct(either)
    assert [await either.state(run.id) for run in (first, second, third)] == [S.SUCCEEDED, S.CANCELLED, S.WAITING]


async def test_one_part_after_the_other_by_those_who_may_do_them(either: Harness) -> None:
    for part in ("fetch", "tell"):
        await either.declare(part, queue=f"{part}ing")
    parts = [{"step": "one", "job": "fetch"}, {"step": "two", "job": "tell"}]
    either.app.pipeline("train", parts, only_workers=["gpu-1"], max_concurrency=1)
    await either.store.save_jobs(either.app.registry.definitions())
    first, second, *_ = await backfilled(either, concurrency=3)
    queues = ["fetching", "telling"]
    for run in (first, second):
        for queue in queues:
            assert (await taken(either, "web-1", queues=queues)).claims == {}
            worker = await taken(either, "gpu-1", queues=[queue])
            assert list(worker.claims) == [run.id], "under the job's limit, too"
            await worker.finish()
        assert await either.state(run.id) is S.SUCCEEDED


async def test_whoever_may_do_them_is_told(either: Harness) -> None:
    told: list[str] = []
    real: Any = getattr(either.store.database, "_inner", either.store.database)  # it is the one that tells
    real.notify = told.extend
    await either.declare("fetch", queue="fetching")
    either.app.pipeline("train", [{"step": "one", "job": "fetch"}])
    await either.store.save_jobs(either.app.registry.definitions())
    await backfilled(either)
    assert "fetching" in told


@pytest.mark.parametrize("change", [{}, {"only_workers": ["gpu-1"]}, {"replicas": 1}])
async def test_a_unique_key_lets_one_of_them_be(either: Harness, change: dict[str, Any]) -> None:
    await either.declare("train", unique=True, **change)
    (only,) = await backfilled(either, concurrency=3)
    await conduct(either)
    worker = await taken(either, "gpu-1")
    await worker.finish()
    await conduct(either)
    assert await either.state(only.id) is S.SUCCEEDED
