"""Test a graceful stop: no more claims, running handlers finish, and the rest is handed back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rota import Context, Outcome, RunState
from rota.core.runs.outcome import Report
from rota.store.databases.database import Tx
from rota.store.runs.report import Reported
from rota.testing import Harness
from tests.support.databases.unreliable_store import ShakyStore
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import AT_ONCE, Working
from tests.support.wait import PATIENCE, round_trips, until

Start = Callable[..., Awaitable[Working]]

PATIENT = timedelta(seconds=PATIENCE)


async def test_a_handler_that_ends_within_the_grace_is_reported(either: Harness, working: Start) -> None:
    @either.app.job
    async def attentive(ctx: Context) -> str:
        await until(lambda: ctx.shutting_down)
        return "in time"

    run = await either.enqueue(attentive)
    real = await working(either)
    await real.has_state(run, RunState.RUNNING)
    await real.stop(PATIENT)
    done = await either.run(run)
    assert (done.state, done.result) == (RunState.SUCCEEDED, "in time")


async def test_what_does_not_end_is_handed_back_at_no_cost(either: Harness, working: Start) -> None:
    @either.app.job(max_attempts=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    run = await either.enqueue(endless)
    real = await working(either)
    await real.has_state(run, RunState.RUNNING)
    await real.stop(AT_ONCE)
    back = await either.run(run)
    assert (back.state, back.attempt) == (RunState.QUEUED, 0)
    assert [attempt.outcome for attempt in await either.attempts(run)] == [Outcome.HANDED_BACK]


async def test_at_most_once_work_that_has_begun_is_not_handed_to_another(either: Harness, working: Start) -> None:
    @either.app.job(on_lost="fail")
    async def payment() -> None:
        await asyncio.Event().wait()

    run = await either.enqueue(payment)
    real = await working(either)
    await real.has_state(run, RunState.RUNNING)
    await real.stop(AT_ONCE)
    assert await either.state(run) is RunState.EXPIRED


async def test_a_thread_that_does_not_end_is_handed_back(harness: Harness, working: Start) -> None:
    release = threading.Event()

    @harness.app.job
    def stuck() -> None:
        release.wait()

    run = await harness.enqueue(stuck)
    real = await working(harness)
    await real.has_state(run, RunState.RUNNING)
    await real.stop(AT_ONCE)
    assert await harness.state(run) is RunState.QUEUED
    release.set()


async def test_a_process_that_does_not_end_is_killed_and_handed_back(
    harness: Harness, working: Start, tmp_path: Path
) -> None:
    job = harness.app.job(isolation="process")(isolated_jobs.leave_pid_and_hang)
    run = await harness.enqueue(job, place=str(tmp_path / "pid"))
    real = await working(harness)
    await until((tmp_path / "pid").exists)
    await real.stop(AT_ONCE)
    assert await harness.state(run) is RunState.QUEUED
    pid = int((tmp_path / "pid").read_text())
    await until(lambda: not Path(f"/proc/{pid}").exists())


async def test_the_buffer_goes_back_before_the_grace_is_over(
    either: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: 5)
    release = asyncio.Event()

    @either.app.job
    async def work() -> None:
        await release.wait()

    runs = [await either.enqueue(work) for _ in range(4)]
    real = await working(either, concurrency=1)
    await until(lambda: len(real.worker.held) == 4)
    stopping = asyncio.create_task(real.stop(PATIENT))

    async def back() -> bool:
        return [await either.state(run) for run in runs].count(RunState.QUEUED) == 3

    await until(back)
    assert not stopping.done()
    release.set()
    await stopping
    states = [await either.state(run) for run in runs]
    assert sorted(states) == [RunState.QUEUED] * 3 + [RunState.SUCCEEDED]
    assert {(await either.run(run)).attempt for run in runs if await either.state(run) is RunState.QUEUED} == {0}


async def test_nothing_is_claimed_once_it_stops(harness: Harness, working: Start) -> None:
    release = asyncio.Event()

    @harness.app.job
    async def work() -> None:
        await release.wait()

    first = await harness.enqueue(work)
    real = await working(harness)
    await real.has_state(first, RunState.RUNNING)
    stopping = asyncio.create_task(real.stop(PATIENT))
    await asyncio.sleep(0)
    later = await harness.enqueue(work)
    release.set()
    await stopping
    assert await harness.state(first) is RunState.SUCCEEDED
    assert await harness.state(later) is RunState.QUEUED


async def test_a_claim_under_way_is_awaited_and_handed_back(either: Harness, working: Start) -> None:
    """Cancelled half-way, its leases would stay until they expire, and cost an attempt."""
    begun: list[int] = []

    @either.app.job(max_attempts=1)
    async def work(n: int) -> None:
        begun.append(n)

    store = ShakyStore(either.store)
    store.claims_answered.clear()
    run = await either.enqueue(work, n=1)
    real = await working(either, store=store)
    await store.claims_done.wait()
    stopping = asyncio.create_task(real.stop(PATIENT))
    await asyncio.sleep(0)
    store.claims_answered.set()
    await stopping
    back = await either.run(run)
    assert (back.state, back.attempt, begun) == (RunState.QUEUED, 0, [])


async def test_it_ends_soon_even_with_the_database_away(
    harness: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.engine.worker.worker._LAST_REPORTS", 0.05)

    @harness.app.job
    async def endless() -> None:
        await asyncio.Event().wait()

    run = await harness.enqueue(endless)
    store = ShakyStore(harness.store)
    real = await working(harness, store=store)
    await real.has_state(run, RunState.RUNNING)
    store.report_faults.extend(["refused"] * 1_000)
    store.claim_faults.extend(["refused"] * 1_000)
    await real.stop(AT_ONCE)
    assert store.report_faults, "it gave up while the database still refused"
    harness.clock.advance(harness.lease * 2)
    await harness.reaper.step()
    assert await harness.state(run) is RunState.QUEUED


async def test_stopping_twice_is_stopping_once(harness: Harness, working: Start) -> None:
    real = await working(harness)
    await real.stop()
    await real.stop()


async def test_a_stopped_worker_is_not_listed_any_more(harness: Harness, working: Start) -> None:
    real = await working(harness)

    async def body(tx: Tx) -> int:
        return int((await tx.fetch_sql("select count(*) from rota_worker"))[0][0])

    async def signs_of_life() -> int:
        return await harness.store.database.read(body)

    async def listed() -> bool:
        return await signs_of_life() == 1

    await until(listed)
    await real.stop()
    assert await signs_of_life() == 0


async def test_reports_that_are_under_way_are_waited_for(
    either: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leaves before they have arrived leaves a lease that nobody gives back."""

    @either.app.job(max_attempts=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    run = await either.enqueue(endless)
    real = await working(either)
    await real.has_state(run, RunState.RUNNING)
    report = real.store.report

    async def slow(reports: list[Report]) -> Reported:
        await round_trips(either.store.database)  # whoever does not wait has left by then
        return await report(reports)

    monkeypatch.setattr(real.store, "report", slow)
    await real.stop(AT_ONCE)
    assert (await either.run(run)).state is RunState.QUEUED
