"""Test that a run that kills its worker does not stop the fleet: suspects run one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from rota import Outcome, RunState
from rota.core.runs.claim import Claim, OrderedRequest, QueueRequest
from rota.core.runs.outcome import Report
from rota.engine.worker.suspects import Suspects
from rota.testing import Harness
from rota.values.durations import in_micros
from tests.support.runs.real_worker import SECOND, Working
from tests.support.wait import round_trips, until

Start = Callable[..., Awaitable[Working]]


async def lose(harness: Harness) -> None:
    harness.clock.advance(harness.lease + SECOND)
    await harness.reaper.step()


async def lose_twice(harness: Harness, queues: Sequence[str] = ("default",)) -> None:
    """Lose every run twice, with two workers: the first time anything may have killed the worker."""
    await lose(harness)
    await harness.worker("unlucky", queues=queues).claim(20)
    await lose(harness)


async def outcomes(harness: Harness, run_id: str) -> list[Outcome | None]:
    return [attempt.outcome for attempt in await harness.attempts(run_id)]


class Life:
    """One life of a worker that claims as a real one does, up to the moment when its handlers begin."""

    def __init__(self, harness: Harness, number: int) -> None:
        self._store = harness.store
        self._facts = (f"worker-{number}", "worker", harness.app.registry.known(), in_micros(harness.lease))

    async def claim(self) -> list[Claim]:
        worker_id, name, known, lease = self._facts
        suspects, held, slots = Suspects(), list[Claim](), 5
        for _ in range(slots):
            asks = (QueueRequest("default", slots - len(held)),)
            request = OrderedRequest(worker_id, name, asks, known, lease, slots - len(held), suspects.level)
            answer = await self._store.claim_in_order(request)
            suspects.remember(answer.others)
            held += answer.others + answer.plain
        return held


async def test_innocents_beside_a_poison_run_lose_two_attempts_at_most(either: Harness) -> None:
    @either.app.job
    def work() -> None: ...

    poison, *innocents = [(await either.enqueue(work)).id for _ in range(12)]
    for number in range(40):
        claims = await Life(either, number).claim()
        if poison in [claim.run_id for claim in claims]:
            await lose(either)
            continue
        await either.store.report([Report(claim.run_id, claim.fence, Outcome.SUCCEEDED) for claim in claims])
    assert await either.state(poison) is RunState.EXPIRED
    assert await outcomes(either, poison) == [Outcome.LOST] * 4
    for run in innocents:
        told = await outcomes(either, run)
        assert told.count(Outcome.LOST) <= 2
        assert told[-1] is Outcome.SUCCEEDED


async def test_a_worker_has_one_suspect_at_a_time_beside_other_work(either: Harness, working: Start) -> None:
    release = asyncio.Event()
    begun: list[str] = []

    @either.app.job
    async def work(name: str) -> None:
        begun.append(name)
        await release.wait()

    lost = [await either.enqueue(work, name=f"lost {n}") for n in range(4)]
    await either.worker().claim(10)
    await lose_twice(either)
    fresh = [await either.enqueue(work, name="fresh") for _ in range(3)]
    real = await working(either, concurrency=6)
    await until(lambda: len(begun) == 4)
    for _ in range(3):
        await real.worker.step()
    assert sorted(begun) == ["fresh", "fresh", "fresh", "lost 0"]
    assert len(real.worker.held) == 4
    release.set()
    for run in lost + fresh:
        await real.has_state(run, RunState.SUCCEEDED)
    assert [await outcomes(either, run.id) for run in lost] == [[Outcome.LOST, Outcome.LOST, Outcome.SUCCEEDED]] * 4


async def test_of_several_queues_one_suspect_begins_and_the_others_go_back_first(
    either: Harness, working: Start
) -> None:
    active: list[str] = []
    most = 0

    @either.app.job
    async def work(name: str) -> None:
        nonlocal most
        active.append(name)
        most = max(most, len(active))
        await round_trips(either.store.database, 10)
        active.remove(name)

    lost = [await either.enqueue(work, {"queue": queue}, name=queue) for queue in "abc"]
    await either.worker(queues=list("abc")).claim(1)
    await lose_twice(either, list("abc"))
    real = await working(either, concurrency=5, queues=["a", "b", "c"])
    for run in lost:
        done = await real.has_state(run, RunState.SUCCEEDED)
        assert done.attempt == 3, "handed back before it began: that costs no attempt"
    assert most == 1


async def test_suspects_under_limits_run_one_at_a_time_too(either: Harness, working: Start) -> None:
    active = most = 0

    @either.app.job(limit={"max": 1, "by": "customer"})
    async def work(customer: str) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await round_trips(either.store.database, 10)
        active -= 1

    lost = [await either.enqueue(work, customer=name) for name in "abcd"]
    await either.worker().claim(10)
    await lose_twice(either)
    real = await working(either, concurrency=5)
    for run in lost:
        await real.has_state(run, RunState.SUCCEEDED)
    assert most == 1


async def test_a_busy_worker_looks_for_suspects_too(
    harness: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its slots never idle, its buffer is never empty by itself."""
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: 20)
    over = False

    @harness.app.job
    async def work(endless: bool) -> None:
        harness.clock.advance(SECOND / 100)
        if endless and not over:
            await harness.enqueue(work, endless=True)

    lost = await harness.enqueue(work, endless=False)
    await harness.worker().claim()
    await lose_twice(harness)
    for _ in range(60):
        await harness.enqueue(work, {"priority": 5}, endless=True)
    real = await working(harness, concurrency=3)
    await real.has_state(lost, RunState.SUCCEEDED)
    over = True
    await until(lambda: not real.worker.held)
