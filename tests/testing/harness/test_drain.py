"""Test `drain`: it runs everything that is due, with the real worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import Context, Retry, Rota, RunState
from rota.core.runs.claim import QueueRequest
from rota.engine.worker.worker import Worker
from rota.testing import Harness, adrain, drain


@pytest.fixture
def app(tmp_path: Path) -> Rota:
    return Rota(f"sqlite:///{tmp_path / 'drained.db'}")


@pytest.fixture
async def harness(app: Rota) -> AsyncIterator[Harness]:
    async with Harness(app) as harness:
        yield harness


def test_sync_code_drains_too(app: Rota) -> None:
    @app.job
    def double(n: int) -> int:
        return 2 * n

    double.enqueue_many([{"n": n} for n in range(25)])
    assert sorted(run.result for run in drain(app)) == [2 * n for n in range(25)]
    assert drain(app) == []
    app.close()


async def test_what_a_handler_enqueues_is_drained_as_well(app: Rota, harness: Harness) -> None:
    @app.job
    async def countdown(n: int) -> int:
        if n:
            await countdown.aenqueue(n=n - 1)
        return n

    await countdown.aenqueue(n=3)
    assert [run.result for run in await adrain(app)] == [3, 2, 1, 0]


async def test_delayed_runs_wait_for_the_clock(app: Rota, harness: Harness) -> None:
    @app.job
    async def later() -> None: ...

    run = await later.options(delay="1h").aenqueue()
    assert await adrain(app) == []
    harness.clock.advance("59m")
    assert await adrain(app) == []
    harness.clock.advance("1m")
    assert [ran.id for ran in await adrain(app)] == [run.id]


async def test_a_failure_is_tried_again_after_its_backoff(app: Rota, harness: Harness) -> None:
    tries: list[int] = []

    @app.job(backoff="10m")
    async def flaky() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("not yet")

    await flaky.aenqueue()
    assert [run.state for run in await adrain(app)] == [RunState.SCHEDULED]
    assert await adrain(app) == []
    harness.clock.advance("10m")
    assert [run.state for run in await adrain(app)] == [RunState.SCHEDULED]
    harness.clock.advance("10m")
    assert [(run.state, run.attempt) for run in await adrain(app)] == [(RunState.SUCCEEDED, 3)]


async def test_a_run_retried_at_once_is_told_of_once(app: Rota, harness: Harness) -> None:
    @app.job(max_attempts=3)
    async def stubborn() -> None:
        raise Retry(after="0s")

    await stubborn.aenqueue()
    assert [(run.state, run.attempt) for run in await adrain(app)] == [(RunState.FAILED, 3)]


async def test_every_queue_with_work_is_drained(app: Rota, harness: Harness) -> None:
    @app.job
    def anywhere() -> None: ...

    await anywhere.options(queue="far-away").aenqueue()
    assert [run.state for run in await harness.drain()] == [RunState.SUCCEEDED]


async def test_a_run_that_ends_while_more_is_being_claimed_counts_as_claimed(
    app: Rota, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else draining thinks that nothing was left, and what the run has led to stays."""

    @app.job
    async def first(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            tx.finish(1)

    look = Worker._claim_in_order

    async def look_when_all_have_ended(
        worker: Worker, asks: tuple[QueueRequest, ...], now: float, *, exact: bool
    ) -> float:
        while worker.active:
            await asyncio.sleep(0)
        return await look(worker, asks, now, exact=exact)

    monkeypatch.setattr(Worker, "_claim_in_order", look_when_all_have_ended)
    run = await harness.enqueue("first")
    assert [ran.id for ran in await harness.drain()] == [run.id]
