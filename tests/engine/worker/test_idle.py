"""Test that an idle worker rests, and that freed slots are used again."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.runs.claim import Claim, ClaimRequest, OrderedRequest
from rota.core.states import RunState
from rota.engine.engine import worker_info
from rota.engine.worker.worker import Worker
from rota.store import Store
from rota.store.workers.claims import OrderedClaims
from rota.testing import Harness
from tests.support.runs.real_worker import Working
from tests.support.wait import until

Start = Callable[..., Awaitable[Working]]


class Counting(Store):
    """A store that counts how often it is asked for work."""

    claims = 0

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        self.claims += 1
        return await super().claim(request)

    async def claim_in_order(self, request: OrderedRequest) -> OrderedClaims:
        self.claims += 1
        return await super().claim_in_order(request)


async def claims_while_idle(store: Counting) -> int:
    """Count the worker's claims while another client gets fifty answers from the same database."""
    await until(lambda: store.claims >= 1)
    before = store.claims
    for _ in range(50):
        await store.now()
    return store.claims - before


async def test_an_idle_worker_rests_until_it_polls(either: Harness, working: Start) -> None:
    await either.declare("noop")
    store = Counting(either.store.database)
    await working(either, store=store, poll=timedelta(seconds=10))
    assert await claims_while_idle(store) <= 5


async def test_an_idle_look_is_one_transaction_whatever_kinds_of_runs_there_were(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    @either.app.job(labels=["gpu"], limit={"max": 1})
    async def labelled() -> None: ...

    run = await either.enqueue(labelled)
    config = msgspec.structs.replace(either.config, worker_labels="gpu")
    registry = either.app.registry
    worker = Worker(either.store, registry, worker_info(registry, config, "idle", None), config)
    while ran := await worker.drain_once():
        assert ran == [run.id]
    asked: list[str] = []
    for way in ("transact", "alone", "glance", "read"):
        do = getattr(either.store.database, way)

        async def counted(*args: Any, way: str = way, do: Any = do, **options: Any) -> Any:
            asked.append(way)
            return await do(*args, **options)

        monkeypatch.setattr(either.store.database, way, counted)
    assert await worker.step() > 0
    assert asked == ["transact"]
    await worker.stop()


async def test_a_queue_named_twice_is_looked_at_once(harness: Harness, working: Start) -> None:
    await harness.declare("noop")
    store = Counting(harness.store.database)
    real = await working(harness, store=store, queues=["a", "a"], poll=timedelta(seconds=10))
    assert real.worker.info.queues == ("a",)
    assert await claims_while_idle(store) <= 5


async def test_the_slot_of_a_handler_that_ignored_its_end_is_used_again(harness: Harness, working: Start) -> None:
    release = asyncio.Event()

    @harness.app.job(timeout="1s", max_attempts=1, cancel_grace="0s")
    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    @harness.app.job
    async def other() -> None: ...

    stuck = await harness.enqueue(stubborn, {"priority": 1, "timeout": "10ms"})
    real = await working(harness, concurrency=1, poll=timedelta(seconds=10))
    await real.has_state(stuck, RunState.TIMED_OUT)
    runs = [await harness.enqueue(other) for _ in range(3)]
    release.set()
    for run in runs:
        await real.has_state(run, RunState.SUCCEEDED)


async def test_what_was_handed_back_keeps_its_place(either: Harness) -> None:
    first, second = [await either.enqueue("work") for _ in range(2)]
    stopping = await either.worker("a").claim()
    either.clock.advance("10s")
    await stopping.hand_back(first)
    next_one = await either.worker("b").claim()
    assert list(next_one.claims) == [first.id]
    assert await either.state(second) is RunState.QUEUED


async def test_what_was_lost_keeps_its_place(either: Harness) -> None:
    first, second = [await either.enqueue("work") for _ in range(2)]
    await either.worker("a").claim()
    either.clock.advance("1m")
    await either.reaper.step()
    next_one = await either.worker("b").claim()
    assert list(next_one.claims) == [first.id]
    assert await either.state(second) is RunState.QUEUED
