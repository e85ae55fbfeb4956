"""Connections of a pool that belongs to the application: `Rota(url, pool=pool)`."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import asyncpg

from rota.errors import BadConfig
from rota.store.databases.postgres.place import place_of

if TYPE_CHECKING:
    from rota.store.databases.postgres.postgres import Connection

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

# Every type that statements take or return: a codec of the application's would change what rota reads.
_VALUES: dict[str, object] = {
    "text": "a",
    "bigint": 1,
    "int": 2,
    "boolean": True,
    "double precision": 0.5,
    "uuid": uuid.UUID(int=7),
    "text[]": ["a"],
    "int[]": [1],
    "bigint[]": [2],
    "uuid[]": [uuid.UUID(int=7)],
}
_ECHO = "select " + ", ".join(f"${place}::{kind}" for place, kind in enumerate(_VALUES, 1))
_ISOLATION = "select current_setting('default_transaction_isolation')"


class SharedPool:
    """The application's pool, from which each transaction takes a connection and gives it back.

    A pool of asyncpg belongs to one event loop: clients of other loops, heartbeats and child processes connect by the
    URL.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._checked = asyncio.Lock()
        self._is_usable = False
        self._greeted: set[int] = set()  # process ids of server processes, as long as their connections live

    async def acquire(self, connect: Callable[[], Awaitable[Connection]]) -> Connection:
        """Take a connection. Before the first one, compare the pool with what `connect` makes by the URL."""
        if not self._is_usable:
            async with self._checked:
                if not self._is_usable:
                    await self._check(connect)
                    self._is_usable = True
        return await self._acquire()

    async def _acquire(self) -> Connection:
        return cast("Connection", await self._pool.acquire())

    async def release(self, connection: Connection) -> None:
        """Give it back. What was committed on it stays so if the pool cannot reset it, and throws it away."""
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            await self._pool.release(cast("Any", connection))

    def is_new(self, connection: Connection) -> bool:
        """Return whether it is used for the first time, and remember it."""
        pid = connection.get_server_pid()
        if pid in self._greeted:
            return False
        self._greeted.add(pid)
        connection.add_termination_listener(lambda _: self._greeted.discard(pid))
        return True

    def forget(self) -> None:
        """Let each connection be greeted again."""
        self._greeted.clear()

    async def _check(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        """Refuse a pool of another database than the URL's, or one that changes values."""
        connection = await self._acquire()
        try:
            own = await connect()
            try:
                is_same = await place_of(connection) == await place_of(own)
            finally:
                own.terminate()
            if not is_same:
                raise BadConfig(
                    "the pool is connected to another database than rota's URL",
                    hint="give both the same: heartbeats, threads and child processes connect by the URL",
                )
            await _require_plain_values(connection)
        finally:
            await self.release(connection)


async def _require_plain_values(connection: Connection) -> None:
    try:
        echoed = tuple(await connection.fetchrow(_ECHO, *_VALUES.values()) or ())
    except (asyncpg.DataError, asyncpg.InternalClientError) as error:  # a codec that cannot even take the value
        raise _converting("some values") from error
    for kind, given, got in zip(_VALUES, _VALUES.values(), echoed, strict=True):
        if got != given:
            raise _converting(kind)
    isolation = await connection.fetchval(_ISOLATION)
    if isolation != "read committed":
        raise BadConfig(
            f"transactions of the pool are {isolation}",
            hint="rota reads what is there after its locks: give it a pool that is read committed",
        )


def _converting(kind: str) -> BadConfig:
    return BadConfig(
        f"the pool's connections convert {kind} in a way of their own",
        hint="give rota a pool without `set_type_codec` for PostgreSQL's basic types; json and jsonb may have one",
    )


def pool_of_this_loop(pool: object) -> SharedPool | None:
    """Return the pool if it belongs to the running event loop: elsewhere it cannot be used."""
    if pool is None:
        return None
    if not isinstance(pool, asyncpg.Pool):
        raise BadConfig(
            f"a pool of {type(pool).__module__.partition('.')[0]} cannot be shared",
            hint="rota takes one of asyncpg; without, it connects by its URL",
        )
    loop = asyncio.get_running_loop()
    return SharedPool(pool) if getattr(pool, "_loop", loop) is loop else None
