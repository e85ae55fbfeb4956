"""Fixtures: a harness on SQLite, one on each database, real workers, and a check for leftovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from rota.store.databases.database import Tx
from rota.testing import Harness
from tests.support.runs.real_worker import Working
from tests.support.wait import PATIENCE

_HOLDERS = """
select l.worker_id from rota_lease l
where not exists (select 1 from rota_worker w where w.id = l.worker_id and w.host = 'external')
"""


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    yield
    ending = asyncio.all_tasks() - {asyncio.current_task()}  # of a thread that was just let go, perhaps
    if ending:
        await asyncio.wait(ending, timeout=PATIENCE)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"left running: {left}"


@pytest.fixture
async def harness(sqlite_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=sqlite_url) as harness:
        yield harness
        await no_lease_is_left(harness)


@pytest.fixture
async def either(database_url: str) -> AsyncIterator[Harness]:
    """The harness, once on SQLite and once on PostgreSQL."""
    async with Harness(url=database_url) as harness:
        yield harness
        await no_lease_is_left(harness)


async def no_lease_is_left(harness: Harness) -> None:
    """Workers driven by hand, and those outside, may hold what they like; a real one that has stopped may not."""

    async def holders(tx: Tx) -> set[str]:
        return {row[0] for row in await tx.fetch_sql(_HOLDERS)}

    assert await harness.store.database.read(holders) <= {worker.id for worker in harness.workers}


@pytest.fixture
async def working() -> AsyncIterator[Callable[..., Awaitable[Working]]]:
    """`await working(harness, concurrency=2)` starts a real worker; it is stopped when the test ends, if not before."""
    async with AsyncExitStack() as stack:

        async def start(harness: Harness, **settings: Any) -> Working:
            return await stack.enter_async_context(Working(harness, **settings))

        yield start
