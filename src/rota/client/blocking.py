"""Synchronous client: the verbs of `Client`, run on an event loop in a background thread."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from rota.client.blocking_parts import (
    BlockingAttention,
    BlockingDatabase,
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
from rota.client.handle import Handle
from rota.core.runs.options import Order
from rota.errors import BlocksEventLoop

if TYPE_CHECKING:  # clients of a server must not import the store
    from rota.client.client import Client

T = TypeVar("T")
_running_loop = asyncio._get_running_loop  # unlike the public one, it needs no exception to say that there is none


class LoopThread:
    """Event loop in a background thread, to which synchronous code submits coroutines."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rota-blocking", daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def acall(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop, awaited on another one."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

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

    def __init__(self, connect: Callable[[], Awaitable[Client]], door: BlockingClient) -> None:
        self.thread = LoopThread()
        self.client: Client | None = None
        self._connect = connect
        self._door = door
        # Calls from several threads share one client: the first connects, the others wait.
        self._connecting = asyncio.Lock()

    async def connected(self) -> Client:
        async with self._connecting:
            if self.client is None:
                client = await self._connect()
                client.door = client.door or self._door
                self.client = client
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
        self.attention = BlockingAttention(self._call)
        self.database = BlockingDatabase(self._call)

    def _call(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        connection = self._connection or self._start()

        async def answer() -> T:
            return await verb(connection.client or await connection.connected())

        return connection.thread.call(answer())

    def _start(self) -> _Connection:
        with self._lock:
            # Looked at again under the lock: another thread may have come first.
            self._connection = self._connection or _Connection(self._connect, self)
            self.is_open = True
            return self._connection

    def enqueue(self, order: Order) -> Handle[Any]:
        """Enqueue a run.

        Written out, unlike the other verbs: every synchronous enqueue comes here, and a made verb takes more calls.
        """
        if _running_loop() is not None:
            raise BlocksEventLoop("enqueue", "`await job.aenqueue(…)`")
        return self._call(lambda client: client.enqueue(order))

    def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Handle[Any]]:
        """Enqueue several runs, all or nothing."""
        if _running_loop() is not None:
            raise BlocksEventLoop("enqueue_many", "`await job.aenqueue_many(…)`")
        return self._call(lambda client: client.enqueue_many(orders))

    def _wait_for(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run a verb for a handle and wait for its result."""
        if _running_loop() is not None:
            raise BlocksEventLoop("waiting for a run", "`await handle`, or one of its verbs with an `a`")
        return self._call(verb)

    async def _await(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run a verb for a handle in async code, on this client's own event loop."""
        connection = self._connection or self._start()

        async def answer() -> T:
            return await verb(connection.client or await connection.connected())

        return await connection.thread.acall(answer())

    def close(self) -> None:
        with self._lock:
            connection, self._connection, self.is_open = self._connection, None, False
        if connection is not None:
            connection.close()
