"""Connections on which both sides wait for each other, found by asking the server on another one.

A network may forget a connection and tell nobody. Whoever waits for an answer on it would wait until the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import asyncpg

from rota.errors import RotaError

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

PATIENCE = 4.0
"""Seconds without an answer, after which the server is asked what it is doing."""
_EVERY = 1.0
_ANSWER = 2.0
# A server behind the same name that does not know the process is another one: it cannot tell.
_IDLE = """
select pid from pg_stat_activity
where pid = any($1::int[]) and datname = current_database() and usename = current_user and state like 'idle%'
    and state_change < clock_timestamp() - make_interval(secs => $2)
"""


class StuckConnections:
    """Calls say when they begin and end. One that the server knows nothing of loses its connection at once."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._since: dict[Connection, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._ask_at = 0.0

    def begin(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        self._since[connection] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(_EVERY, self._look)

    def end(self, connection: Connection) -> None:
        self._since.pop(connection, None)

    async def close(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._asking and not self._asking.done():
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def _look(self) -> None:
        self._timer = None
        if not self._since:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_EVERY, self._look)
        now = loop.time()
        silent = {connection: since for connection, since in self._since.items() if now - since >= PATIENCE}
        if silent and now >= self._ask_at and (self._asking is None or self._asking.done()):
            self._asking = loop.create_task(self._ask(silent))

    async def _ask(self, silent: dict[Connection, float]) -> None:
        try:
            # One of a shared pool that was given back meanwhile answers nothing, with an InterfaceError.
            pids = {connection.get_server_pid(): connection for connection in silent if not connection.is_closed()}
            async with asyncio.timeout(_ANSWER):
                idle = await self._idle(list(pids))
        except (RotaError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            return  # nobody is heard now, so nothing is known; soon again
        # Where one is lost, the next may be; but who is only slow is not asked for each second.
        self._ask_at = 0.0 if idle else asyncio.get_running_loop().time() + PATIENCE / 2
        # Nothing is terminated on silence alone: a slow statement is silent, too.
        for pid in idle:
            connection = pids[pid]
            if self._since.get(connection) == silent[connection]:  # still the same call
                connection.terminate()

    async def _idle(self, pids: list[int]) -> list[int]:
        """Return those that have been waiting for us, while we have been waiting for them."""
        # A new one: those of the pool may be forgotten by the same network.
        connection = await self._connect()
        try:
            return [row["pid"] for row in await connection.fetch(_IDLE, pids, PATIENCE / 2)]
        finally:
            connection.terminate()
