"""LISTEN / NOTIFY as hints: coalesced when sent, re-established when lost, never relied upon."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from rota.store.databases.database import Hint

_WINDOW = 0.02
_CHECK_EVERY = 25.0  # more than from one look of an idle process to the next, which asks here and so checks, too
_ANSWER = 5.0
_RECONNECT_AFTER = 1.0
_CHANNEL = "rota"

T = TypeVar("T")


class Notifier:
    """Sender of at most one notification per queue and window: NOTIFY serialises commits in PostgreSQL."""

    def __init__(self, send: Callable[[list[str]], Awaitable[None]]) -> None:
        self._send = send
        self._pending: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def tell(self, queues: Iterable[str | None]) -> None:
        self._pending.update(queue or "" for queue in queues)
        if self._pending and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while self._pending:
            await self._send_pending()
            await asyncio.sleep(_WINDOW)

    async def _send_pending(self) -> None:
        # Taken out before the send: what is told while it is under way goes with the next window.
        queues, self._pending = sorted(self._pending), set()
        with contextlib.suppress(Exception):  # a hint: whoever polls finds the work without it
            await self._send(queues)

    async def flush(self) -> None:
        if self._task and not self._task.done():
            # It may be resting until its window ends; what it has not sent yet is sent below.
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._pending:
            await self._send_pending()


class Listener:
    """Keeps one connection listening, looks now and then whether it is still alive, and makes a new one if not."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._hints: dict[object, Hint] = {}
        self._task: asyncio.Task[None] | None = None
        self._connection: Any = None
        self._asking = asyncio.Lock()
        self._answered_at = 0.0

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def ask(self, question: Callable[[Any], Awaitable[T]]) -> T:
        """Ask on the connection that listens. One that does not answer is replaced."""
        async with self._asking:  # asyncpg does one thing at a time
            connection = self._connection
            if connection is None:
                raise ConnectionError("nobody listens")
            try:
                async with asyncio.timeout(_ANSWER):
                    answer = await question(connection)
            except BaseException:
                connection.terminate()  # nobody knows in which state it is
                raise
            self._answered_at = asyncio.get_running_loop().time()
            return answer

    def add(self, hint: Hint) -> Callable[[], None]:
        token = object()
        self._hints[token] = hint
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

        def stop() -> None:
            self._hints.pop(token, None)

        return stop

    def _received(self, _connection: Any, _pid: int, _channel: str, queue: str) -> None:
        # A copy: a hint may stop listening.
        for hint in list(self._hints.values()):
            hint(queue or None)

    async def _work(self) -> None:
        while True:
            try:
                await self._listen()
            except Exception:
                await asyncio.sleep(_RECONNECT_AFTER)

    async def _listen(self) -> None:
        """Listen until the connection is lost, which raises an error."""
        loop = asyncio.get_running_loop()
        connection = await self._connect()
        try:
            cut = asyncio.Event()
            connection.add_termination_listener(lambda _: cut.set())
            await connection.add_listener(_CHANNEL, self._received)
            self._connection, self._answered_at = connection, loop.time()
            self._tell_all()  # something may have come while nobody listened
            await self._check(cut)
        except Exception:
            if self._connection is not None:
                self._connection = None
                self._tell_all()  # whoever relied on hints must look by himself from now on
            raise
        finally:
            self._connection = None
            connection.terminate()

    async def _check(self, cut: asyncio.Event) -> None:
        """Look now and then whether the connection is alive, unless it has answered somebody meanwhile."""
        loop = asyncio.get_running_loop()
        while True:
            # Not wait_for: woken and cancelled at once, it forgets the latter.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._answered_at + _CHECK_EVERY):
                    await cut.wait()
            # A network may forget an idle connection without a word: only a question finds out.
            if cut.is_set() or loop.time() >= self._answered_at + _CHECK_EVERY:
                await self.ask(lambda connection: connection.execute("select 1"))

    def _tell_all(self) -> None:
        self._received(None, 0, _CHANNEL, "")

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
