"""Renew a worker's leases from a thread and a connection of its own, so that no handler can delay it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta

import msgspec

from rota.core.workers.worker import WorkerInfo
from rota.engine.observability.meters import Meters
from rota.engine.observability.repeated_errors import RepeatedErrors
from rota.store import Extended, Store
from rota.values.durations import in_micros

log = logging.getLogger("rota.worker")

Answer = Callable[["Beat"], None]


class Beat(msgspec.Struct, frozen=True):
    """One renewal: the leases it covered, and which of them were lost or asked to cancel.

    The leases are valid for a lease time counted from `began_at` (monotonic): the database may have answered later.
    """

    began_at: float
    held: dict[str, int]
    extended: Extended


class Heartbeat:
    """Renewal of all leases in one statement. `held` is the worker's own dict of run id → fence."""

    def __init__(self, store: Store, worker: WorkerInfo, held: Mapping[str, int], lease: timedelta) -> None:
        self._store = store
        self._worker = worker
        self._held = held
        self._lease = lease

    async def step(self) -> Beat:
        """Renew a snapshot of `held` and return the answer."""
        # The event loop's thread changes `held` meanwhile: renew a copy, and let the answer name the fences it is for.
        began_at, held = self._store.clock.monotonic(), dict(self._held)
        extended = await self._store.extend(self._worker, list(held.items()), in_micros(self._lease))
        return Beat(began_at, held, extended)


def next_patience(spent: float, interval: float, lease: float) -> float:
    """Return for how many seconds to await a heartbeat; the one before it was answered or given up after `spent`.

    A database that needs longer than the interval to connect and answer would otherwise never renew a lease, however
    long. It is at most a third of a lease: with an interval of a third, too, a second attempt begins before the lease
    ends if a half-open socket swallows the first one.
    """
    return max(interval, min(2 * spent, lease / 3))


class HeartbeatThread:
    """Daemon thread that repeats `Heartbeat.step` every `interval`."""

    def __init__(
        self,
        store: Store,
        worker: WorkerInfo,
        held: Mapping[str, int],
        lease: timedelta,
        interval: timedelta,
        meters: Meters | None = None,
    ) -> None:
        self._parent = store
        self._worker = worker
        self._held = held
        self._lease = lease
        self._interval = interval.total_seconds()
        self._meters = meters or Meters()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._now: asyncio.Event | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, answer: Answer) -> None:
        """Start the thread. `answer` is called on the event loop that is running now, not in the thread."""
        home = asyncio.get_running_loop()

        def deliver(beat: Beat) -> None:
            with contextlib.suppress(RuntimeError):  # the home loop may be closing
                home.call_soon_threadsafe(answer, beat)

        self._thread = threading.Thread(
            target=lambda: asyncio.run(self.beat(deliver)), name="rota-heartbeat", daemon=True
        )
        self._thread.start()

    def change(self, worker: WorkerInfo, interval: timedelta, *, at_once: bool) -> None:
        """Use `worker` and `interval` from the next heartbeat on; with `at_once`, send one now for others to see."""
        self._worker = worker
        self._interval = interval.total_seconds()
        if at_once:
            self.renew_now()

    def renew_now(self) -> None:
        """Request a heartbeat now. Safe from any thread."""
        if self._loop and self._now:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._now.set)

    async def stop(self) -> None:
        self._stopping = True
        self.renew_now()
        if self._thread:
            await asyncio.to_thread(self._thread.join, 2.0)

    async def beat(self, deliver: Answer) -> None:
        """Send heartbeats on the running event loop until stopped."""
        self._loop, self._now = asyncio.get_running_loop(), asyncio.Event()
        store = self._parent.twin()  # connections belong to an event loop, and this thread has its own
        errors = RepeatedErrors(log, "heartbeat", store.clock)
        patience = self._interval
        while not self._stopping:
            rest, asked_at = self._interval, self._loop.time()
            try:
                # A half-open socket answers nothing for minutes; without a timeout every lease would expire meanwhile.
                async with asyncio.timeout(patience):
                    deliver(await Heartbeat(store, self._worker, self._held, self._lease).step())
                self._meters.beats_ok.add()
                errors.recovered()
            except Exception as error:
                self._meters.beats_failed.add()
                rest = min(1.0, self._interval / 3)  # retry sooner than the interval: the lease keeps running out
                errors.failed(error, str(error) or f"no answer within {patience:g}s")
            patience = next_patience(self._loop.time() - asked_at, self._interval, self._lease.total_seconds())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._now.wait(), rest)
            self._now.clear()
        with contextlib.suppress(Exception):
            await store.close()
