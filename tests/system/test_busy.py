"""Test handlers that use too much CPU or die: the worker survives and keeps its leases."""

from __future__ import annotations

import asyncio

import pytest

from rota import Outcome, RunState
from tests.system.site import Site

LEASE = 4.0  # within which a heartbeat comes through, also where others use the processor


@pytest.mark.parametrize("job", ["block_the_loop", "burn_in_thread"])
async def test_a_handler_that_starves_its_worker_keeps_its_lease(site: Site, job: str) -> None:
    site.worker("starved", {"ROTA_LEASE": f"{LEASE}s", "ROTA_HEARTBEAT": "1s"})
    run = await site.enqueue(job, seconds=2 * LEASE)
    await site.begun(run)
    site.worker("rival")
    await site.all_succeed([run])
    assert await site.outcomes(run) == [Outcome.SUCCEEDED]
    assert len(site.ledger.entries("begin", run)) == 1


@pytest.mark.parametrize("by", ["exit", "kill"])
async def test_a_job_whose_process_dies_is_tried_again(site: Site, by: str) -> None:
    worker = site.worker()
    run = await site.enqueue("die", by=by, times=1)
    done = await site.final(run)
    assert (done.state, done.result) == (RunState.SUCCEEDED, 2)
    first, second = await site.client.attempts(run)
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.SUCCEEDED)
    assert first.error is not None
    assert first.error.code == "process_died"
    assert worker.exit_code is None


async def test_a_job_that_always_kills_its_process_fails_alone(site: Site) -> None:
    worker = site.worker()
    bystander = await site.enqueue("nap_in_process", seconds=[1.0])
    poison = [await site.enqueue("die", by=by, times=9) for by in ("exit", "kill") * 4]
    for run in poison:
        done = await site.final(run)
        assert (done.state, done.attempt) == (RunState.FAILED, 2)
    await site.all_succeed([bystander, *await site.enqueue_many(5, "quick")])
    assert await site.outcomes(bystander) == [Outcome.SUCCEEDED]
    assert worker.exit_code is None


async def test_an_idle_worker_is_small(site: Site) -> None:
    worker = site.worker()
    await site.all_succeed([await site.enqueue("quick")])
    await asyncio.sleep(3)
    assert worker.memory_mb() < 80
