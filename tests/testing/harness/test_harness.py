"""Test the harness as its users see it."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rota import Context, LeaseLost, Rota, RunState
from rota.errors import Invalid, UnknownJob
from rota.testing import Harness, ManualClock, adrain

SECOND = timedelta(seconds=1)


async def test_a_run_whose_worker_dies_is_tried_again(database_url: str) -> None:
    async with Harness(url=database_url) as harness:
        run = await harness.enqueue("flaky")
        zombie = await harness.worker("a").claim()  # and never reports
        harness.clock.advance(harness.lease + SECOND)
        await harness.reaper.step()
        assert await harness.state(run) is RunState.QUEUED
        with pytest.raises(LeaseLost):
            await zombie.finish(run)


async def test_a_worker_claims_one_run_at_a_time_in_the_order_of_all_kinds(database_url: str) -> None:
    order = ("once", "limited", "plain", "named", "limited", "plain")
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "limited": {"limit": {"max": 1}},
        "named": {"only_workers": ["a"]},
        "once": {"on_lost": "fail"},
    }
    async with Harness(url=database_url) as harness:
        for kind, options in kinds.items():
            await harness.declare(kind, **options)
        wanted = [(await harness.enqueue(kind, {"priority": 9 - place})).id for place, kind in enumerate(order)]
        await harness.enqueue("plain", {"priority": 1})
        worker, begun = harness.worker("a"), list[str]()
        for run in wanted:
            await worker.claim()
            begun += worker.claims.keys() - begun
            await worker.finish(run)
        assert begun == wanted
        assert len((await harness.worker("b").claim(5)).claims) == 1


def test_without_a_url_its_file_is_gone_afterwards() -> None:
    async def use() -> Path:
        async with Harness() as harness:
            await harness.enqueue("job")
            return Path(harness.config.database_url.removeprefix("sqlite:///"))

    file = asyncio.run(use())
    assert file.parent.name.startswith("rota-")
    assert not file.parent.exists()


async def test_an_app_uses_the_harness_inside_and_its_own_database_outside(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path / 'own.db'}")

    @app.job
    async def greet(ctx: Context, name: str) -> str:
        return f"hello {name}"

    async with Harness(app) as harness:
        run = await greet.aenqueue(name="Ada")
        assert await harness.state(run) is RunState.QUEUED
        blocking = await asyncio.to_thread(greet.enqueue, name="Bob")
        assert {ran.result for ran in await adrain(app)} == {"hello Ada", "hello Bob"}
        assert await harness.state(blocking) is RunState.SUCCEEDED
    assert not (tmp_path / "own.db").exists()
    external = await greet.aenqueue(name="Eve")
    assert (tmp_path / "own.db").exists()
    assert (await (await app.connect()).get(external.id)).state is RunState.QUEUED
    await app.aclose()


async def test_a_given_app_must_know_the_job() -> None:
    async with Harness(Rota("sqlite:///unused.db")) as harness:
        with pytest.raises(UnknownJob):
            await harness.enqueue("unheard-of")


async def test_hands_want_to_know_which_run_is_meant() -> None:
    async with Harness() as harness:
        await harness.enqueue("a")
        await harness.enqueue("a")
        worker = await harness.worker().claim(2)
        with pytest.raises(Invalid, match="claimed 2 runs"):
            await worker.finish()
        with pytest.raises(Invalid, match="never claimed"):
            await worker.finish("another")


async def test_hands_count_the_time_they_were_busy() -> None:
    async with Harness() as harness:
        run = await harness.enqueue("slow")
        worker = await harness.worker().claim()
        harness.clock.advance("5s")
        await worker.finish(run, result={"n": 1})
        done = await harness.run(run)
        assert done.started_at
        assert done.finished_at
        assert done.finished_at - done.started_at == timedelta(seconds=5)
        assert done.result == {"n": 1}


async def test_settings_and_clock_are_the_callers() -> None:
    clock = ManualClock()
    async with Harness(clock=clock, lease=timedelta(minutes=1)) as harness:
        assert harness.lease == timedelta(minutes=1)
        before = await harness.client.time()
        clock.advance("3d")
        assert await harness.client.time() - before == timedelta(days=3)


async def test_a_harness_can_be_opened_again() -> None:
    harness = Harness()
    for _ in range(2):  # each time on a new file
        async with harness:
            run = await harness.enqueue("once")
            await harness.worker().claim()
            assert await harness.state(run) is RunState.RUNNING
        assert harness.left_over == []
