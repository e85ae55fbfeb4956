"""Test that a silently lost connection is noticed long before the deadline, and a slow answer is awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota import Unavailable
from rota.store.databases.postgres import stuck_connections
from tests.support.databases.network_proxy import Proxy, proxy_to
from tests.system.site import connected, migrate

PATIENCE = 0.2
DEADLINE = 30.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck_connections, "PATIENCE", PATIENCE)
    monkeypatch.setattr(stuck_connections, "_EVERY", PATIENCE)


@pytest.fixture
async def proxy(postgres_url: str) -> AsyncIterator[Proxy]:
    await migrate(postgres_url)
    with proxy_to(postgres_url) as proxy:
        yield proxy


async def test_calls_on_half_open_connections_are_answered_on_others(proxy: Proxy) -> None:
    async with connected(proxy.url, deadline=DEADLINE) as client:
        await asyncio.gather(*[client.time() for _ in range(8)])
        proxy.stall()
        began = time.monotonic()
        await asyncio.gather(*[client.time() for _ in range(8)])
        assert time.monotonic() - began < DEADLINE / 2


async def test_while_nobody_is_heard_it_is_asked_again(proxy: Proxy) -> None:
    async with connected(proxy.url, deadline=DEADLINE) as client:
        await client.time()
        proxy.stalling = True
        proxy.stall()
        asked = asyncio.create_task(client.time())
        await asyncio.sleep(1.0)
        assert not asked.done()
        proxy.stalling = False
        async with asyncio.timeout(DEADLINE / 2):
            await asked


async def test_one_lost_connection_is_enough_to_give_up_the_others(proxy: Proxy) -> None:
    """Also if it was used for what must not be repeated unasked, as a claim."""

    async def body(tx: Any) -> None:
        await tx.fetch_sql("select 1")

    async with connected(proxy.url, deadline=DEADLINE) as client:
        await asyncio.gather(*[client.time() for _ in range(8)])
        proxy.stall()
        with pytest.raises(Unavailable):
            await client.store.database.transact(body, repeatable=False)
        await client.store.database.transact(body, repeatable=False)


async def test_what_takes_long_is_not_given_up(proxy: Proxy) -> None:
    begun = 0

    async def body(tx: Any) -> None:
        nonlocal begun
        begun += 1
        await tx.fetch_sql("select pg_sleep(1.5)")

    async with connected(proxy.url, deadline=DEADLINE) as client:
        await client.store.database.transact(body)
    assert begun == 1
