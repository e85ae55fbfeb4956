"""Synchronous client: the verbs of `Client`, run on an event loop in a background thread."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from rota.client.blocking_parts import (
    BlockingDataJobs,
    BlockingErrorGroups,
    BlockingExpectations,
    BlockingExternal,
    BlockingMonitoring,
    BlockingNotifications,
    BlockingQuotas,
    BlockingSchedules,
    BlockingTokens,
    BlockingVerbs,
    BlockingWorkers,
)
from rota.core.runs.options import Order
from rota.core.runs.run import Enqueued

if TYPE_CHECKING:  # clients of a server must not import the store
    from rota.client.client import Client

T = TypeVar("T")


class LoopThread:
    """Event loop in a background thread, to which synchronous code submits coroutines."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rota-blocking", daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def see_through(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Like `call`, but defer SIGINT until the coroutine is done, so that it is not abandoned half-way."""
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(handler):
            return self.call(coroutine)
        interrupts: list[tuple[int, FrameType | None]] = []
        signal.signal(signal.SIGINT, lambda *arguments: interrupts.append(arguments))
        try:
            result = self.call(coroutine)
        finally:
            signal.signal(signal.SIGINT, handler)
        if interrupts:
            handler(*interrupts[0])
        return result

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Connection:
    """Thread and client of a `BlockingClient`, from its first call until it is closed."""

    def __init__(self, connect: Callable[[], Awaitable[Client]]) -> None:
        self.thread = LoopThread()
        self.client: Client | None = None
        self._connect = connect
        # Calls from several threads share one client: the first connects, the others wait.
        self._connecting = asyncio.Lock()

    async def connected(self) -> Client:
        async with self._connecting:
            if self.client is None:
                self.client = await self._connect()
            return self.client

    def close(self) -> None:
        if self.client is not None:
            self.thread.call(self.client.close())
        self.thread.stop()


class BlockingClient(BlockingVerbs):
    """Synchronous `Client`. It starts its thread and connects on the first call, also on the first after `close`."""

    def __init__(self, connect: Callable[[], Awaitable[Client]]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self.is_open = False
        self.schedules = BlockingSchedules(self._call)
        self.workers = BlockingWorkers(self._call)
        self.tokens = BlockingTokens(self._call)
        self.quotas = BlockingQuotas(self._call)
        self.external = BlockingExternal(self._call)
        self.expectations = BlockingExpectations(self._call)
        self.error_groups = BlockingErrorGroups(self._call)
        self.notifications = BlockingNotifications(self._call)
        self.data_jobs = BlockingDataJobs(self._call)
        self.monitoring = BlockingMonitoring(self._call)

    def _call(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        connection = self._connection or self._start()

        async def answer() -> T:
            return await verb(connection.client or await connection.connected())

        return connection.thread.call(answer())

    def _start(self) -> _Connection:
        with self._lock:
            # Looked at again under the lock: another thread may have come first.
            self._connection = self._connection or _Connection(self._connect)
            self.is_open = True
            return self._connection

    def enqueue(self, order: Order) -> Enqueued:
        """Enqueue a run.

        Written out, unlike the other verbs: every synchronous enqueue comes here, and a made verb takes more calls.
        """
        return self._call(lambda client: client.enqueue(order))

    def close(self) -> None:
        with self._lock:
            connection, self._connection, self.is_open = self._connection, None, False
        if connection is not None:
            connection.close()
