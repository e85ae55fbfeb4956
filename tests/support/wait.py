"""Wait for a condition, not for a length of time. The only place where tests sleep."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable

from rota.store.databases.database import Database, Tx

PATIENCE = 60.0
_BLOCKED = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"


async def until(condition: Callable[[], object]) -> None:
    """Look again and again until the condition, or what it awaits, is true."""
    async with asyncio.timeout(PATIENCE):
        while not await _holds(condition()):
            await asyncio.sleep(0.005)


async def _holds(answer: object) -> bool:
    return bool(await answer if inspect.isawaitable(answer) else answer)


def wait_for(
    condition: Callable[[], object], seconds: float = PATIENCE, complaint: Callable[[], str] = lambda: "waited in vain"
) -> None:
    """Look again and again, where there is no event loop: in a thread, or in a test of plain functions."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(complaint())
        time.sleep(0.005)


async def forever() -> None:
    """Never return: a handler, or a server, that does not end by itself."""
    await asyncio.Event().wait()


async def until_blocked(database: Database) -> None:
    """Wait until a connection to this PostgreSQL database waits for a lock."""

    async def waiting(tx: Tx) -> bool:
        return bool((await tx.fetch_sql(_BLOCKED))[0][0])

    await until(lambda: database.read(waiting))


async def round_trips(database: Database, count: int = 30) -> None:
    """Let others go on for as long as so many reads take: what does not wait for us is done then, however slow."""

    async def nothing(tx: Tx) -> None:
        await tx.fetch_sql("select 1")

    for _ in range(count):
        await database.read(nothing)
