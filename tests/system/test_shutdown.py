"""Test SIGTERM: claiming stops at once, handlers get their grace, and the rest is handed back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rota import Outcome, RunState
from tests.support.databases.postgres import PostgresCluster
from tests.support.wait import until
from tests.system.site import Site, opened

NAPS = ["nap", "nap_in_thread", "nap_in_process"]
LONG = 600.0  # ten times as long as a process has to end: what waits for it is noticed


async def test_running_handlers_finish_and_nothing_new_begins(site: Site) -> None:
    worker = site.worker(concurrency=2)
    runs = await site.enqueue_many(6, "nap", seconds=[1.0])
    await until(lambda: len(site.ledger.entries("begin")) == 2)
    worker.terminate()
    assert worker.wait() == 0
    assert len(site.ledger.entries("begin")) == len(site.ledger.entries("end")) == 2
    states = sorted([((run := await site.run(id)).state.value, run.attempt) for id in runs])
    assert states == [("queued", 0)] * 4 + [("succeeded", 1)] * 2


@pytest.mark.parametrize("job", NAPS)
async def test_what_outlasts_the_grace_is_handed_back_and_costs_no_attempt(site: Site, job: str) -> None:
    worker = site.worker(settings={"ROTA_SHUTDOWN_GRACE": "500ms"})
    run = await site.enqueue(job, seconds=[LONG])
    await site.begun(run)
    worker.terminate()
    assert worker.wait() == 0
    left = await site.run(run)
    assert (left.state, left.attempt) == (RunState.QUEUED, 0)
    assert await site.outcomes(run) == [Outcome.HANDED_BACK]


async def test_what_is_handed_back_begins_elsewhere_at_once(site: Site) -> None:
    worker = site.worker("first", {"ROTA_SHUTDOWN_GRACE": "300ms"})
    run = await site.enqueue("nap_in_process", seconds=[LONG, 0.0])
    await site.begun(run)
    site.worker("second", {"ROTA_LEASE": f"{LONG}s", "ROTA_HEARTBEAT": "1s"})
    worker.terminate()
    await site.all_succeed([run])
    assert await site.outcomes(run) == [Outcome.HANDED_BACK, Outcome.SUCCEEDED]
    assert (await site.run(run)).attempt == 1


async def test_a_payment_that_outlasts_the_grace_is_not_begun_again(site: Site) -> None:
    worker = site.worker("first", {"ROTA_SHUTDOWN_GRACE": "300ms"})
    run = await site.enqueue("pay", seconds=[LONG])
    await site.begun(run)
    worker.terminate()
    assert worker.wait() == 0
    assert (await site.run(run)).state is RunState.EXPIRED
    site.worker("second")
    await site.all_succeed([await site.enqueue("pay", seconds=[0.0])])
    assert len(site.ledger.entries("begin", run)) == 1


@pytest.mark.parametrize("job", [*NAPS, "block_the_loop"])
async def test_a_second_signal_ends_it_at_once(site: Site, job: str) -> None:
    worker = site.worker(settings={"ROTA_SHUTDOWN_GRACE": f"{LONG}s"})
    run = await site.enqueue(job, seconds=LONG if job == "block_the_loop" else [LONG])
    await site.begun(run)
    worker.terminate()
    if job == "block_the_loop":
        await asyncio.sleep(1)  # it cannot say that the first signal has arrived
    else:
        worker.until_said("stopping")
    assert worker.exit_code is None
    worker.terminate()
    assert worker.wait() != 0


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
async def test_it_stops_in_time_while_the_database_is_away(
    own_postgres_cluster: PostgresCluster, tmp_path: Path, busy: bool
) -> None:
    async with opened(own_postgres_cluster.create_database(), tmp_path) as site:
        worker = site.worker(settings={"ROTA_SHUTDOWN_GRACE": "500ms"})
        if busy:
            await site.begun(await site.enqueue("nap", seconds=[LONG]))
        own_postgres_cluster.stop("immediate")
        await asyncio.sleep(0.7)
        worker.terminate()
        assert worker.wait() == 0
