"""Test a claim whose answer is slow: its leases have expired when it arrives."""

from __future__ import annotations

import asyncio

from rota import RunState
from rota.engine.engine import worker_info
from rota.engine.worker.heartbeat import Beat
from rota.engine.worker.worker import Worker
from rota.store import Extended
from rota.testing import Harness
from tests.support.databases.unreliable_store import ShakyStore
from tests.support.runs.real_worker import SECOND


async def test_what_was_claimed_too_long_ago_is_not_begun_though_a_heartbeat_was_answered_since(
    harness: Harness,
) -> None:
    begun: list[str] = []

    @harness.app.job
    async def work() -> None:
        begun.append("work")

    run = await harness.enqueue(work)
    store = ShakyStore(harness.store)
    store.claims_answered.clear()
    registry = harness.app.registry
    worker = Worker(store, registry, worker_info(registry, harness.config, "slow", None), harness.config)
    claiming = asyncio.create_task(worker.step())
    await store.claims_done.wait()
    harness.clock.advance(harness.lease + SECOND)
    worker.on_heartbeat(Beat(harness.clock.monotonic(), {}, Extended(set(), set())))  # which was not for this run
    store.claims_answered.set()
    await claiming
    assert begun == []
    await worker.drain_once()  # which hands it back
    assert (begun, await harness.state(run), (await harness.run(run)).attempt) == ([], RunState.QUEUED, 0)
    await worker.drain_once()
    assert (begun, await harness.state(run)) == (["work"], RunState.SUCCEEDED)
    await worker.stop()
