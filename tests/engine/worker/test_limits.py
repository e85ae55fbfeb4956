"""Test a worker under limits: never too many at once, the next one soon, no starvation by ordinary runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from rota import Rota, RunFilter, RunState
from rota.engine.worker.worker import Worker
from rota.errors import LimitReached
from rota.store import Store, open_database
from rota.store.workers.due_work import DueWorkStore
from rota.testing import Harness
from tests.support.runs.real_worker import Working
from tests.support.wait import round_trips, until

Start = Callable[..., Awaitable[Working]]


class Crowd:
    """Counts who is inside."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.done = 0

    async def __aenter__(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)

    async def __aexit__(self, *_: object) -> None:
        self.inside -= 1
        self.done += 1


async def test_no_more_at_once_than_the_limit_allows(either: Harness, working: Start) -> None:
    crowd = Crowd()

    @either.app.job(max_concurrency=3)
    async def work(n: int) -> None:
        async with crowd:
            await until(lambda: crowd.most >= 3)
            await round_trips(either.store.database, 3)

    await work.aenqueue_many([{"n": n} for n in range(40)])
    for _ in range(2):
        await working(either, concurrency=10)
    await until(lambda: crowd.done == 40)
    assert crowd.most == 3


async def test_without_hints_a_worker_looks_for_the_slots_that_it_gives_back(
    either: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody tells it, and its next poll is far off."""
    monkeypatch.setattr(DueWorkStore, "is_told", False)
    monkeypatch.setattr(Worker, "_hinted", lambda _worker, _queue: None)
    crowd = Crowd()

    @either.app.job(max_concurrency=1)
    async def work() -> None:
        async with crowd:
            pass

    await work.aenqueue_many([{}] * 4)
    await working(either, deaf=True)
    await until(lambda: crowd.done == 4)
    assert crowd.most == 1


async def test_customers_take_turns(either: Harness, working: Start) -> None:
    order: list[str] = []

    @either.app.job(limit={"max": 1, "by": "customer"})
    async def work(customer: str) -> None:
        order.append(customer)

    await work.aenqueue_many([{"customer": customer} for customer in ["a"] * 10 + ["b"] * 3])
    await working(either, concurrency=5)
    await until(lambda: len(order) == 13)
    assert order[:6].count("b") >= 2


async def test_a_free_slot_is_taken_without_polling(database_url: str) -> None:
    app = Rota(database_url, poll="1h")
    ended: list[int] = []

    @app.job(max_concurrency=1)
    async def work(n: int) -> None:
        await asyncio.sleep(0)
        ended.append(n)

    store = Store(open_database(database_url))
    await store.migrate()
    await store.close()
    async with app.running():
        await work.aenqueue_many([{"n": n} for n in range(6)])
        await until(lambda: len(ended) == 6)
    await app.aclose()


async def test_limited_runs_do_not_starve_behind_plain_ones(harness: Harness, working: Start) -> None:
    going = True

    @harness.app.job
    async def plain() -> None:
        await asyncio.sleep(0)

    @harness.app.job(max_concurrency=1)
    async def limited() -> None:
        nonlocal going
        going = False

    await plain.aenqueue_many([{} for _ in range(3000)])
    await limited.aenqueue()
    work = await working(harness, concurrency=5)
    await until(lambda: not going)
    await work.stop()


async def test_a_retried_run_keeps_its_limit(either: Harness) -> None:
    await either.declare("work", max_concurrency=1, backoff="10s")
    first, second = await either.enqueue("work"), await either.enqueue("work")
    one = await either.worker("a").claim(5)
    await one.fail(first)
    two = await either.worker("b").claim(5)
    assert list(two.claims) == [second.id]
    either.clock.advance("11s")
    await either.promoter.step()
    assert not (await either.worker("c").claim(5)).claims
    await two.finish(second)
    assert list((await either.worker("d").claim(5)).claims) == [first.id]


async def test_a_dead_workers_slot_is_given_to_the_next(either: Harness) -> None:
    await either.declare("work", max_concurrency=1, max_attempts=1)
    first, second = await either.enqueue("work"), await either.enqueue("work")
    await either.worker("dead").claim(5)
    either.clock.advance(either.lease + timedelta(seconds=1))
    await either.reaper.step()
    assert await either.state(first) is RunState.EXPIRED
    assert list((await either.worker("next").claim(5)).claims) == [second.id]


async def test_everything_limited_is_drained(either: Harness) -> None:
    @either.app.job(max_concurrency=2, limit={"max": 1, "by": "n"})
    async def work(n: int) -> int:
        return n

    await work.aenqueue_many([{"n": n % 5} for n in range(30)])
    assert len(await either.drain()) == 30
    assert await either.drain() == []


async def test_callers_hear_that_a_limit_is_reached(either: Harness) -> None:
    await either.declare("work", limit={"max": 1, "when_full": "reject"})
    await either.enqueue("work")
    answers = await asyncio.gather(*[either.enqueue("work") for _ in range(3)], return_exceptions=True)
    assert [type(answer) for answer in answers] == [LimitReached] * 3
    assert len(await either.client.list(RunFilter(job="work"))) == 1


async def test_a_retry_by_hand_is_limited_too(either: Harness) -> None:
    await either.declare("work", limit={"max": 1, "by": "n"}, max_attempts=1)
    first = await either.enqueue("work", n=1)
    await (await either.worker("a").claim()).fail()
    await either.enqueue("work", n=1)
    busy = await either.worker("b").claim()
    again = await either.client.retry(first.id)
    assert not (await either.worker("c").claim()).claims
    await busy.finish()
    assert list((await either.worker("d").claim()).claims) == [again.id]


async def test_a_paused_queue_rests_and_goes_on_at_once(either: Harness, working: Start) -> None:
    done: list[int] = []

    @either.app.job
    async def work(n: int) -> None:
        done.append(n)

    await either.client.pause_queue("default", reason="a look inside")
    await work.aenqueue(n=1)
    real = await working(either)
    assert await real.worker.step() > 0
    assert done == []
    assert (await either.client.resume_queue("default")).was_paused
    await until(lambda: done == [1])
