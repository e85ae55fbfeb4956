"""Test handlers that ignore a cancel: their run is cancelled after its grace, and the worker survives."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from rota import Context, Outcome, RunState
from rota.core.runs.run import Enqueued
from rota.store import Store, open_database
from rota.testing import Harness
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import Working, until_state
from tests.support.wait import until

Start = Callable[..., Awaitable[Working]]


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """A thread cannot be killed: the test lets it go."""
    event = threading.Event()
    yield event
    event.set()


async def swallower(harness: Harness, release: threading.Event, _place: Path) -> Enqueued:
    @harness.app.job(cancel_grace="30ms")
    async def deaf(ctx: Context) -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await until(release.is_set)

    return await harness.enqueue(deaf)


async def thread_that_never_looks(harness: Harness, release: threading.Event, _place: Path) -> Enqueued:
    @harness.app.job(cancel_grace="30ms")
    def deaf() -> None:
        release.wait()

    return await harness.enqueue(deaf)


async def process_that_ignores_its_context(harness: Harness, _release: threading.Event, place: Path) -> Enqueued:
    job = harness.app.job(isolation="process", cancel_grace="30ms")(isolated_jobs.leave_pid_and_hang_with_context)
    return await harness.enqueue(job, place=str(place / "pid"))


@pytest.mark.parametrize("make", [swallower, thread_that_never_looks, process_that_ignores_its_context])
async def test_it_is_cancelled_and_the_worker_lives_on(
    harness: Harness,
    working: Start,
    release: threading.Event,
    tmp_path: Path,
    make: Callable[[Harness, threading.Event, Path], Awaitable[Enqueued]],
) -> None:
    run = await make(harness, release, tmp_path)

    @harness.app.job
    async def after() -> None: ...

    real = await working(harness, concurrency=2)
    await until(lambda: len(real.worker.active) == 1)
    assert (await harness.client.cancel(run.id, reason="enough", actor="ann")).state is RunState.CANCELLING
    harness.clock.advance("1s")
    await harness.reaper.step()
    cancelled = await real.has_state(run, RunState.CANCELLED)
    assert (cancelled.reason, cancelled.cancelled_by) == ("enough", "ann")
    assert {attempt.outcome for attempt in await harness.attempts(run)} <= {Outcome.CANCELLED, Outcome.LOST}
    await real.has_state(await harness.enqueue(after), RunState.SUCCEEDED)
    release.set()
    await real.idle()
    await until(lambda: real.worker._executor.slots_taken == 0)
    assert (await harness.run(run)).state is RunState.CANCELLED, "its late return changes nothing"


async def test_a_cancel_needs_no_hint(
    either: Harness, working: Start, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    """By another process, while nobody hears notifications."""

    @either.app.job
    async def endless() -> None:
        await asyncio.Event().wait()

    run = await either.enqueue(endless)
    monkeypatch.setattr(either.store.database, "listen", lambda _hint: lambda: None)
    await working(either)
    await until_state(either, run, RunState.RUNNING)
    elsewhere = Store(open_database(database_url, either.clock))
    monkeypatch.setattr(elsewhere.database, "notify", lambda _queues: None)
    assert (await elsewhere.cancel(run.id, None, "ann")).state is RunState.CANCELLING
    await until_state(either, run, RunState.CANCELLED)
    await elsewhere.close()
