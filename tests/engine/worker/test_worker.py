"""Test the worker: what it claims, in which order, and that no handler can crash it."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Literal

import pytest

from rota import Context, Order, Retry, Rota, RunState
from rota.core.jobs.job import JobDefinition
from rota.core.runs.options import new_run
from rota.testing import Harness, adrain
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import SECOND, Working
from tests.support.runs.runs import claim
from tests.support.wait import until

Start = Callable[..., Awaitable[Working]]


class Unheard(BaseException):
    pass


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Careless(Retry):
    """An exception whose `after` was never set."""

    def __init__(self) -> None:
        Exception.__init__(self)


class Incomparable(dict[str, int]):  # noqa: PLW1641
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare me")


def misbehave(how: str) -> object:
    match how:
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "base":
            raise Unheard
        case "generator":
            raise GeneratorExit
        case "cancelled":
            raise asyncio.CancelledError
        case "stop":
            return next(iter(()))
        case "unreadable":
            raise Unreadable
        case "careless":
            raise Careless
        case "incomparable":
            return Incomparable(a=1)
    raise AssertionError(how)


WAYS = ["exit", "interrupt", "base", "generator", "cancelled", "stop", "unreadable", "careless", "incomparable"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_no_handler_brings_the_worker_down(harness: Harness, working: Start, how: str, kind: str) -> None:
    if kind == "coroutine":

        @harness.app.job(max_attempts=1)
        async def work(how: str) -> object:
            return misbehave(how) if how else "fine"
    else:

        @harness.app.job(max_attempts=1)
        def work(how: str) -> object:
            return misbehave(how) if how else "fine"

    bad = await harness.enqueue(work, how=how)
    real = await working(harness, concurrency=1)
    assert (await real.has_state(bad, RunState.FAILED)).error is not None
    good = await harness.enqueue(work, how="")
    assert (await real.has_state(good, RunState.SUCCEEDED)).result == "fine"
    assert real.worker.active == {}


async def test_a_process_that_dies_is_a_failure(harness: Harness, working: Start) -> None:
    vanish = harness.app.job(isolation="process", max_attempts=1)(isolated_jobs.vanish)
    run = await harness.enqueue(vanish)
    done = await (await working(harness)).has_state(run, RunState.FAILED)
    assert done.error is not None
    assert done.error.code == "process_died"


@pytest.mark.parametrize("payload", ['{"n": "many"}', "{}", '{"n": 1, "m": 2}', "[]", "no json", "[" * 100_000])
async def test_an_undecodable_payload_fails_its_run_and_the_worker_lives(
    either: Harness, working: Start, payload: str
) -> None:
    @either.app.job
    async def typed(n: int) -> int:
        return n

    run = new_run(JobDefinition(name="typed"), either.store.new_id(), payload, {})
    await either.store.enqueue([run])
    good = await either.enqueue(typed, n=7)
    real = await working(either)
    assert (await real.has_state(good, RunState.SUCCEEDED)).result == 7
    await real.idle()
    (attempt,) = await either.attempts(run.id)
    assert attempt.error is not None
    assert attempt.error.type == "UnreadablePayload"
    assert await either.store.leases_of(real.worker.info.id) == []
    assert await either.store.queue_counts() == []


async def test_a_result_beyond_the_cap_fails_without_a_retry(harness: Harness, working: Start) -> None:
    @harness.app.job
    async def wordy() -> str:
        return "x" * 1_000

    run = await harness.enqueue(wordy)
    done = await (await working(harness, max_payload=500)).has_state(run, RunState.FAILED)
    assert (done.attempt, done.result) == (1, None)
    assert done.error is not None
    assert done.error.code == "bad_result"


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_a_result_that_is_not_json_fails_without_a_retry(
    harness: Harness, working: Start, isolation: Literal["thread", "process"]
) -> None:
    job = harness.app.job(isolation=isolation)(isolated_jobs.unstorable)
    run = await harness.enqueue(job)
    done = await (await working(harness)).has_state(run, RunState.FAILED)
    assert done.attempt == 1
    assert done.error is not None


async def test_counters_are_kept_with_the_attempt(harness: Harness, working: Start) -> None:
    @harness.app.job
    async def counting(ctx: Context) -> None:
        ctx.count("items", 25)
        ctx.count("items")
        ctx.count("x" * 150)
        ctx.count("x" * 150)

    in_process = harness.app.job(isolation="process")(isolated_jobs.count)
    runs = [await harness.enqueue(counting), await harness.enqueue(in_process, n=3)]
    real = await working(harness)
    counters = []
    for run in runs:
        await real.has_state(run, RunState.SUCCEEDED)
        counters.append((await harness.attempts(run))[0].counters)
    assert counters == [{"items": 26, "x" * 150: 2}, {"steps": 3}]


async def test_a_counter_that_cannot_be_stored_is_refused(harness: Harness) -> None:
    @harness.app.job(max_attempts=1)
    async def counting(ctx: Context, name: str) -> None:
        ctx.count("\ud800" if name == "surrogate" else name, float("nan") if name == "nan" else 1)

    runs = [await harness.enqueue(counting, name=name) for name in ("surrogate", "nan", "")]
    await harness.drain()
    assert {await harness.state(run) for run in runs} == {RunState.FAILED}


async def test_context_variables_do_not_leak_from_run_to_run(
    harness: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a full buffer, the end of one attempt begins the next."""
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: 10)
    tenant = contextvars.ContextVar("tenant", default="nobody")
    seen: list[str] = []

    @harness.app.job
    async def on_the_loop() -> None:
        seen.append(tenant.get())
        tenant.set("somebody")

    @harness.app.job
    def in_a_thread() -> None:
        seen.append(tenant.get())
        tenant.set("somebody else")

    for _ in range(3):
        await harness.enqueue(on_the_loop)
        await harness.enqueue(in_a_thread)
    real = await working(harness, concurrency=1)
    await until(lambda: len(seen) == 6)
    await real.idle()
    assert seen == ["nobody"] * 6


@pytest.mark.parametrize(("failed_over", "state"), [(False, RunState.QUEUED), (True, RunState.EXPIRED)])
async def test_a_lease_that_is_there_again_after_a_failover_may_have_begun(
    either: Harness, working: Start, *, failed_over: bool, state: RunState
) -> None:
    """The failover lost what its worker reported. Without one, the answer of a claim was lost, and nothing began."""
    await either.declare("careful", on_lost="fail", queue="elsewhere")
    real = await working(either, queues=["default"])
    run = await either.enqueue("careful")
    (_,) = await claim(either.store, worker=real.worker.info.id, queues=("elsewhere",), known={"careful": 1})
    if failed_over:
        epoch = "insert into rota_epoch (epoch, place, floor, since) values (1000, 'x', 1000000, :at)"
        await either.store.database.transact(lambda tx: tx.fetch_sql(epoch, at=either.store.clock.micros()))
    real.worker._doubt_until = either.clock.monotonic() + 40.0
    await real.has_state(run, state)


async def test_it_never_claims_unknown_jobs_or_newer_versions(either: Harness) -> None:
    await either.declare("unknown")
    await either.declare("growing", version=2)
    for job in ("unknown", "growing"):
        await either.enqueue(job)
    old = Rota("sqlite:///unused.db")

    @old.job
    async def growing() -> None: ...

    async with Harness(old, url=either.config.database_url, clock=either.clock):
        assert await adrain(old) == []
    counts = await either.store.queue_counts()
    assert counts == [("default", 0, 2, 0)]


async def test_newer_code_runs_older_runs(either: Harness) -> None:
    @either.app.job(name="growing", version=1)
    async def first(n: int) -> str:
        return f"first {n}"

    run = await either.enqueue("growing", n=1)
    new = Rota("sqlite:///unused.db")

    @new.job(name="growing", version=3)
    async def third(n: int, m: int = 0) -> str:
        return f"third {n}"

    async with Harness(new, url=either.config.database_url, clock=either.clock):
        assert [ran.result for ran in await adrain(new)] == ["third 1"]
    assert await either.state(run) is RunState.SUCCEEDED


async def test_higher_priorities_first_then_the_oldest(either: Harness) -> None:
    order: list[str] = []

    @either.app.job
    async def noting(name: str) -> None:
        order.append(name)

    for name, priority in [("c", 0), ("a", 9), ("e", -1), ("d", 0), ("b", 9)]:
        await either.enqueue(noting, {"priority": priority}, name=name)
        either.clock.advance("1ms")
    worker = await either.worker().claim(0)
    for _ in range(5):
        await worker.claim(1)
    assert [either_payload(worker.claims[id].payload) for id in worker.claims] == ["a", "b", "c", "d", "e"]


def either_payload(text: str) -> str:
    return text.split('"')[3]


async def test_a_real_worker_keeps_the_order_with_one_slot(harness: Harness, working: Start) -> None:
    order: list[int] = []

    @harness.app.job
    async def noting(n: int) -> None:
        order.append(n)

    for n in range(6):
        await harness.enqueue(noting, {"priority": n % 2}, n=n)
        harness.clock.advance("1ms")
    await working(harness, concurrency=1)
    await until(lambda: len(order) == 6)
    assert order == [1, 3, 5, 0, 2, 4]


async def test_with_one_slot_every_queue_has_its_turn(either: Harness, working: Start) -> None:
    order: list[str] = []

    @either.app.job
    async def noting(queue: str) -> None:
        order.append(queue)

    for _ in range(3):
        for queue in ("a", "b", "c"):
            await either.enqueue(noting, {"queue": queue}, queue=queue)
    await working(either, concurrency=1, queues=["a", "b", "c"])
    await until(lambda: len(order) == 9)
    assert [sorted(order[turn : turn + 3]) for turn in (0, 3, 6)] == [["a", "b", "c"]] * 3


async def test_at_most_once_work_is_never_buffered(
    harness: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: 10)
    release = asyncio.Event()

    @harness.app.job(on_lost="fail")
    async def solo() -> None:
        await release.wait()

    @harness.app.job
    async def other() -> None:
        await release.wait()

    solos = [await harness.enqueue(solo, {"priority": 5}) for _ in range(5)]
    others = [await harness.enqueue(other) for _ in range(5)]
    real = await working(harness, concurrency=2)
    await until(lambda: len(real.worker.active) == 2)
    for _ in range(20):
        await harness.store.now()
    # Nor is anything behind it: a slot that becomes free is for the next of them.
    assert sorted(real.worker.held) == sorted(run.id for run in solos[:2])
    release.set()
    for run in solos + others:
        await real.has_state(run, RunState.SUCCEEDED)


async def test_a_run_lost_and_claimed_anew_by_the_same_worker_has_one_attempt(harness: Harness, working: Start) -> None:
    begun: list[int] = []
    stopped: list[int] = []
    release = asyncio.Event()

    @harness.app.job
    async def work(ctx: Context) -> int:
        begun.append(ctx.fence)
        try:
            await release.wait()
        except asyncio.CancelledError:
            stopped.append(ctx.fence)
            raise
        return ctx.fence

    run = await harness.enqueue(work)
    real = await working(harness, concurrency=5, heartbeat=timedelta(seconds=10))
    await until(lambda: len(begun) == 1)
    harness.clock.advance(harness.lease + SECOND)
    await harness.reaper.step()
    await until(lambda: len(begun) == 2)
    await until(lambda: stopped == begun[:1])
    assert list(real.worker.active) == [run.id]
    release.set()
    assert (await real.has_state(run, RunState.SUCCEEDED)).result == begun[1]
    await real.idle()
    assert real.worker.active == {}


async def test_runs_enqueued_together_are_all_run(either: Harness, working: Start) -> None:
    @either.app.job
    async def double(n: int) -> int:
        return 2 * n

    enqueued = await either.client.enqueue_many([Order("double", {"n": n}) for n in range(300)])
    real = await working(either)
    for n, run in enumerate(enqueued):
        assert (await real.has_state(run, RunState.SUCCEEDED)).result == 2 * n


async def test_a_failed_attempt_is_told_in_the_workers_log(
    harness: Harness, working: Start, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.app.job(max_attempts=2, backoff="5s")
    async def broken() -> None:
        raise ValueError("out of paper\nand of ink")

    run = await harness.enqueue(broken)
    real = await working(harness)
    await real.has_state(run, RunState.SCHEDULED)
    assert f"run {run.id} of broken: attempt 1 of 2 failed, retry in 5s: ValueError: out of paper" in caplog.text


async def test_an_attempt_that_is_over_leaves_nothing_to_the_collector_of_garbage(harness: Harness) -> None:
    """A ring of objects for each run: to find them took a quarter of a busy worker's time."""

    @harness.app.job
    async def add(number: int) -> int:
        return number

    async def left_by(count: int) -> int:
        await add.aenqueue_many([{"number": number} for number in range(count)])
        gc.collect()
        gc.disable()
        try:
            assert len(await adrain(harness.app)) == count
            return gc.collect()
        finally:
            gc.enable()

    few, many = await left_by(10), await left_by(210)
    assert many - few < 200
