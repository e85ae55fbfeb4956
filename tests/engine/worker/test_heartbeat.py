"""Test heartbeats: no handler can delay them, and their answers reach the handler."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import apsw
import pytest

from rota import Context, LeaseLost, Outcome, RunState
from rota.engine.worker.heartbeat import Beat, HeartbeatThread, next_patience
from rota.store import Extended
from rota.testing import Harness
from tests.support.runs.real_worker import SECOND, Working
from tests.support.wait import PATIENCE, until, wait_for

Start = Callable[..., Awaitable[Working]]

RARELY = timedelta(seconds=10)
SHORT = timedelta(milliseconds=50)


class Leases:
    """The leases as another process sees them."""

    def __init__(self, url: str) -> None:
        self._path = url.removeprefix("sqlite:///")

    def renewed_after(self, at: int) -> bool:
        connection = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return any(row[0] > at for row in connection.execute("select expires_at from rota_lease"))
        finally:
            connection.close()


@pytest.mark.parametrize("kind", ["blocks the loop", "burns in a thread"])
async def test_a_handler_cannot_starve_them(harness: Harness, working: Start, sqlite_url: str, kind: str) -> None:
    leases = Leases(sqlite_url)
    lease = harness.lease

    def almost_expire() -> bool:
        """Return whether the lease was renewed while the handler blocked the event loop."""
        harness.clock.advance(lease - SECOND)
        renewed, end = False, time.monotonic() + PATIENCE
        due = harness.clock.micros() + 2_000_000
        while not renewed and time.monotonic() < end:
            for _ in range(50_000):
                pass
            renewed = leases.renewed_after(due)
        return renewed

    if kind == "blocks the loop":

        @harness.app.job
        async def busy() -> list[bool]:
            return [almost_expire(), almost_expire()]
    else:

        @harness.app.job
        def busy() -> list[bool]:
            return [almost_expire(), almost_expire()]

    run = await harness.enqueue(busy)
    real = await working(harness)
    assert (await real.has_state(run, RunState.SUCCEEDED)).result == [True, True]
    assert (await harness.run(run)).attempt == 1


async def test_a_coroutine_whose_lease_is_lost_is_stopped_and_says_nothing(harness: Harness, working: Start) -> None:
    stopped = asyncio.Event()
    started = asyncio.Event()

    @harness.app.job(max_attempts=1)
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    run = await harness.enqueue(work)
    real = await working(harness, heartbeat=RARELY)
    await started.wait()
    harness.clock.advance(harness.lease + SECOND)
    await harness.reaper.step()
    real.worker._heartbeat.renew_now()
    await stopped.wait()
    await real.idle()
    assert await harness.state(run) is RunState.EXPIRED
    assert [attempt.outcome for attempt in await harness.attempts(run)] == [Outcome.LOST]


async def test_a_thread_learns_of_a_lost_lease_when_it_renews(harness: Harness, working: Start) -> None:
    go, started = threading.Event(), asyncio.Event()
    errors: list[LeaseLost] = []
    loop = asyncio.get_running_loop()

    @harness.app.job(max_attempts=1)
    def work(ctx: Context) -> None:
        loop.call_soon_threadsafe(started.set)
        go.wait()
        try:
            wait_for(ctx.heartbeat)
        except LeaseLost as error:
            errors.append(error)
            raise

    run = await harness.enqueue(work)
    real = await working(harness, heartbeat=RARELY)
    await started.wait()
    harness.clock.advance(harness.lease + SECOND)
    await harness.reaper.step()
    go.set()
    await until(lambda: bool(errors))
    await real.idle()
    assert (errors[0].run_id, await harness.state(run)) == (run.id, RunState.EXPIRED)


async def test_a_handler_may_renew_without_waiting(harness: Harness, working: Start, sqlite_url: str) -> None:
    leases = Leases(sqlite_url)
    started = asyncio.Event()

    @harness.app.job
    async def work(ctx: Context) -> None:
        started.set()
        harness.clock.advance("20s")
        ctx.heartbeat()
        await until(lambda: leases.renewed_after(harness.clock.micros()))

    run = await harness.enqueue(work)
    real = await working(harness, heartbeat=RARELY)
    await started.wait()
    await real.has_state(run, RunState.SUCCEEDED)


async def test_an_answer_that_never_comes_does_not_end_them(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-open socket: the call is given up, and the next one made."""
    beats: list[str] = []

    async def extend(*_: object) -> Extended:
        beats.append("asked")
        if len(beats) == 1:
            await asyncio.Event().wait()
        return Extended(set(), set())

    monkeypatch.setattr(harness.store, "extend", extend)
    monkeypatch.setattr(harness.store, "twin", lambda: harness.store)
    info = harness.worker().info
    heartbeat, answered = HeartbeatThread(harness.store, info, {}, SECOND, SHORT), list[Beat]()
    heartbeat.start(answered.append)
    await until(lambda: bool(answered))
    await heartbeat.stop()
    assert len(beats) > 1


async def test_an_answer_that_takes_longer_than_an_interval_comes(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow database: to give up after every interval would be to renew no lease at all."""

    async def extend(*_: object) -> Extended:
        asked_at = time.monotonic()
        await until(lambda: time.monotonic() - asked_at > 4 * SHORT.total_seconds())
        return Extended(set(), set())

    monkeypatch.setattr(harness.store, "extend", extend)
    monkeypatch.setattr(harness.store, "twin", lambda: harness.store)
    heartbeat, answered = HeartbeatThread(harness.store, harness.worker().info, {}, 600 * SHORT, SHORT), list[Beat]()
    heartbeat.start(answered.append)
    await until(lambda: bool(answered))
    await heartbeat.stop()


@pytest.mark.parametrize(
    ("spent", "interval", "lease", "patience"),
    [(0.05, 0.05, 30, 0.1), (8, 0.05, 30, 10), (0.01, 0.05, 30, 0.05), (10, 10, 30, 10), (1.6, 1.6, 6, 2)],
)
def test_an_attempt_takes_at_most_a_third_of_a_lease(
    spent: float, interval: float, lease: float, patience: float
) -> None:
    assert next_patience(spent, interval, lease) == patience
    assert 3 * patience <= lease
