"""LISTEN / NOTIFY as hints: coalesced when sent, re-established when lost, never relied upon."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from rota.store.databases.database import Hint

_WINDOW = 0.02
_CHECK_EVERY = 10.0
_RECONNECT_AFTER = 1.0
_CHANNEL = "rota"


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
            connection = None
            try:
                connection = await self._connect()
                cut = asyncio.Event()
                connection.add_termination_listener(lambda _, cut=cut: cut.set())
                await connection.add_listener(_CHANNEL, self._received)
                self._received(connection, 0, _CHANNEL, "")  # something may have come while nobody listened
                while True:
                    # Not wait_for: woken and cancelled at once, it forgets the latter.
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_CHECK_EVERY):
                            await cut.wait()
                    # A network may forget an idle connection without a word: only a question finds out.
                    await connection.execute("select 1", timeout=_CHECK_EVERY / 2)
            except Exception:
                await asyncio.sleep(_RECONNECT_AFTER)
            finally:
                if connection is not None:
                    connection.terminate()

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
