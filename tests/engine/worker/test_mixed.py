"""Test workers beside other than plain runs: how often they look, for how long they rest, what they lock."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from rota.core.runs.claim import START, Claim, ClaimRequest, Heads, OrderedRequest
from rota.engine.engine import worker_info
from rota.engine.worker.heartbeat import Beat
from rota.engine.worker.worker import Worker
from rota.store import Extended, Store, open_database
from rota.store.databases.database import Tx
from rota.store.databases.postgres.postgres_hot import PostgresHotForms
from rota.store.databases.sqlite.sqlite_hot import SqliteHotForms
from rota.store.workers import claims
from rota.store.workers.claims import OrderedClaims
from rota.testing import Harness
from tests.support.runs.real_worker import SECOND
from tests.support.wait import until

POLL = 10.0


class Noting(Store):
    """A store that notes which claims it is asked for."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database)
        self.asked: list[str] = []

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        self.asked.append("plain")
        return await super().claim(request)

    async def claim_in_order(self, request: OrderedRequest) -> OrderedClaims:
        self.asked.append("in order")
        return await super().claim_in_order(request)


def a_worker(harness: Harness, store: Store | None = None, name: str = "one", **settings: Any) -> Worker:
    options = {"concurrency": 1, "worker_labels": "gpu", "poll": timedelta(seconds=POLL), **settings}
    config = msgspec.structs.replace(harness.config, **options)
    registry = harness.app.registry
    return Worker(store or harness.store, registry, worker_info(registry, config, name, None), config)


def buffer(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let workers buffer so many, as if that were what they finish soon."""
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: count)


async def declare(harness: Harness) -> None:
    async def work() -> None: ...

    kinds: dict[str, dict[str, Any]] = {"plain": {}, "limited": {"limit": {"max": 1}}, "labelled": {"labels": ["gpu"]}}
    for name, options in kinds.items():
        harness.app.job(work, name=name, **options)  # type: ignore[call-overload]
    await harness.store.save_jobs(harness.app.registry.definitions())


async def open_limits(harness: Harness) -> int:
    async def body(tx: Tx) -> int:
        ((count,),) = await tx.fetch_sql("select count(*) from rota_limit where shut = 0")
        return int(count)

    return await harness.store.database.read(body)


async def leave_an_open_limit(harness: Harness, worker: Worker) -> None:
    """Run the only run under a limit: it stays open, and nobody waits under it; then let plain runs wait."""
    await harness.enqueue("limited")
    assert len(await worker.drain_once()) == 1
    harness.clock.advance(SECOND)
    assert await open_limits(harness) == 1
    for _ in range(60):
        await harness.enqueue("plain")


async def test_a_limit_under_which_nobody_waits_does_not_change_how_a_busy_worker_claims(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer(monkeypatch, 5)
    await declare(either)
    store = Noting(either.store)
    worker = a_worker(either, store)
    await leave_an_open_limit(either, worker)
    store.asked.clear()
    assert [len(await worker.drain_once()) for _ in range(8)] == [6] * 8
    assert store.asked == ["in order", *["plain"] * 7]
    assert await open_limits(either) == 0
    while await worker.drain_once():
        pass
    await worker.stop()


async def test_a_worker_without_a_free_slot_shuts_a_limit_under_which_nobody_waits(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer(monkeypatch, 5)
    await declare(either)
    worker = a_worker(either)
    await leave_an_open_limit(either, worker)
    with monkeypatch.context() as patch:
        patch.setattr(worker, "_free", lambda: 0)
        await worker.step()
    assert await open_limits(either) == 0
    while await worker.drain_once():
        pass
    await worker.stop()


async def test_while_somebody_is_at_a_run_an_idle_worker_rests_longer_each_time(postgres_url: str) -> None:
    async with Harness(url=postgres_url) as harness, AsyncExitStack() as stack:
        await declare(harness)
        other = open_database(postgres_url)
        stack.push_async_callback(other.close)
        worker = a_worker(harness)
        for kind in ("plain", "labelled"):
            await worker.drain_once()
            run = await harness.enqueue(kind)

            async def hold(tx: Tx) -> None:
                await tx.fetch_sql("select run_id from rota_ready for update")
                rests = [await worker.step() for _ in range(14)]
                assert rests[0] < 0.1
                assert all(later == min(POLL, 2 * sooner) for sooner, later in pairwise(rests))
                assert rests[-1] == POLL
                worker._hinted("default")
                assert await worker.step() == rests[0]
                await worker.step()

            await other.transact(hold)
            assert await worker.drain_once() == [run.id]
        await worker.stop()


async def test_an_expensive_scan_is_not_repeated_for_every_run_while_others_wait(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many runs that it must pass over make it: each scan from the head takes a second here."""
    buffer(monkeypatch, 0)
    await declare(either)
    runs = [(await either.enqueue(kind)).id for _ in range(10) for kind in ("plain", "plain", "labelled")]
    scans = 0
    for hot in (SqliteHotForms, PostgresHotForms):
        heads = hot.heads

        async def slow(self: Any, request: OrderedRequest, heads: Any = heads) -> Heads:
            nonlocal scans
            if any(ask.after == START for ask in request.asks):
                scans += 1
                either.clock.advance(SECOND)
            found: Heads = await heads(self, request)
            return found

        monkeypatch.setattr(hot, "heads", slow)
    worker = a_worker(either)
    assert [one for _ in runs for one in await worker.drain_once()] == runs
    assert scans <= 4
    await worker.stop()


async def test_a_worker_without_a_free_slot_keeps_nobody_from_a_run(postgres_url: str) -> None:
    async with Harness(url=postgres_url) as harness, AsyncExitStack() as stack:
        await declare(harness)
        other = open_database(postgres_url)
        stack.push_async_callback(other.close)
        run = await harness.enqueue("labelled")
        idle = a_worker(harness, name="idle")
        asked: list[OrderedRequest] = []

        class Remembering(Store):
            async def claim_in_order(self, request: OrderedRequest) -> OrderedClaims:
                asked.append(request)
                return OrderedClaims()

        needs = await harness.store.known_requirements()
        full = a_worker(harness, Remembering(harness.store.database), name="full")
        await full._in_order._learn(full.info)
        await full.step()
        assert asked[-1].needs == frozenset(needs)

        async def look(tx: Tx) -> None:
            answer = await claims.claim(tx, msgspec.structs.replace(asked[-1], slots=0), harness.clock.monotonic)
            assert answer.held_up
            assert await idle.drain_once() == [run.id]

        await other.transact(look)
        await idle.stop()
        await full.stop()


async def test_a_hint_between_the_looks_into_several_queues_is_heard(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run comes into a queue that was looked at already, while the worker has not yet looked into the last one."""
    await declare(either)
    begun = asyncio.Event()

    @either.app.job(queue="a")
    async def late() -> None:
        begun.set()

    await either.store.save_jobs(either.app.registry.definitions())
    looked: list[str] = []

    class Late(Store):
        async def claim_in_order(self, request: OrderedRequest) -> OrderedClaims:
            answer = await super().claim_in_order(request)
            queues = [ask.queue for ask in request.asks]
            looked.extend(queues)
            if looked == ["a"]:
                await either.enqueue(late)
                worker.wake()
            return answer

    config = msgspec.structs.replace(either.config, concurrency=1, poll=timedelta(hours=1))
    registry = either.app.registry
    info = worker_info(registry, config, "several", ["a", "b", "c"])
    worker = Worker(Late(either.store.database), registry, info, config)
    monkeypatch.setattr(either.store, "listen", lambda _heard: lambda: None)
    await worker.start()
    await asyncio.wait_for(begun.wait(), 5)
    await worker.stop()


async def test_new_requirements_do_not_hold_up_claims(either: Harness) -> None:
    await declare(either)
    run = await either.enqueue("plain")

    class Restless(Store):
        made = 0

        async def claim_in_order(self, request: OrderedRequest) -> OrderedClaims:
            self.made += 1
            assert self.made < 20
            await either.enqueue("plain", {"only_workers": [f"nobody {self.made}"]})
            return await super().claim_in_order(request)

    worker = a_worker(either, Restless(either.store.database))
    assert await worker.drain_once() == [run.id]
    await worker.stop()


async def declare_limits(harness: Harness, begun: list[int], wait: asyncio.Event) -> None:
    async def work(no: int) -> None:
        begun.append(no)
        await wait.wait()

    limits: dict[str, Any] = {"limited": {"max": 5}, "rated": {"max": 9, "per": "1h"}}
    for name, limit in limits.items():
        harness.app.job(work, name=name, limit=limit)  # type: ignore[call-overload]
    await harness.store.save_jobs(harness.app.registry.definitions())


async def leased(harness: Harness) -> int:
    async def body(tx: Tx) -> int:
        ((count,),) = await tx.fetch_sql("select count(*) from rota_lease")
        return int(count)

    return await harness.store.database.read(body)


async def test_a_fast_worker_buffers_runs_under_limits_in_order_as_far_as_the_limits_go(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer(monkeypatch, 20)
    begun: list[int] = []
    wait = asyncio.Event()
    await declare_limits(either, begun, wait)
    for no in range(8):
        await either.enqueue("limited", no=no)
    worker = a_worker(either)
    wait.set()
    assert len(await worker.drain_once()) == 5, "its limit, not the one slot"
    assert begun == list(range(5))
    assert len(await worker.drain_once()) == 3
    assert begun == list(range(8))
    await worker.stop()


async def test_a_run_under_a_rate_is_not_buffered_and_nothing_passes_it(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts from its claim: begun later than that, more than the rate would begin within its period."""
    buffer(monkeypatch, 20)
    begun: list[int] = []
    wait = asyncio.Event()
    await declare_limits(either, begun, wait)
    for no, kind in enumerate(["limited", "rated", "limited", "rated", "limited"]):
        await either.enqueue(kind, no=no)
        either.clock.advance(SECOND)
    worker = a_worker(either)
    wait.set()
    claimed = []
    while len(begun) < 5:
        claimed.append(len(await worker.drain_once()))
    assert begun == list(range(5))
    assert claimed == [1, 2, 2], "what follows a rated run that has the slot may be buffered"
    await worker.stop()


async def test_a_buffer_that_is_stuck_gives_the_slots_of_limits_back(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer(monkeypatch, 20)
    begun: list[int] = []
    wait = asyncio.Event()
    await declare_limits(either, begun, wait)
    for no in range(5):
        await either.enqueue("limited", no=no)
    worker = a_worker(either)
    draining = asyncio.create_task(worker.drain_once())
    await until(lambda: begun == [0])
    assert await leased(either) == 5
    either.clock.advance(timedelta(seconds=1))
    worker.on_heartbeat(Beat(either.clock.monotonic(), dict(worker.held), Extended(set(), set())))
    assert len(worker.held) == 5, "that may happen"
    either.clock.advance(timedelta(seconds=2))
    worker.on_heartbeat(Beat(either.clock.monotonic(), dict(worker.held), Extended(set(), set())))
    wait.set()
    await draining
    assert begun == [0]
    assert await leased(either) == 0
    await worker.stop()
