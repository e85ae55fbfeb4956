"""Test what a real worker process asks of PostgreSQL while it has nothing to do, and that it is awake at once."""

from __future__ import annotations

import asyncio

import asyncpg

from tests.system.site import Site

SETTINGS = {"ROTA_LEASE": "30s", "ROTA_HEARTBEAT": "10s", "ROTA_REAPER": "5s", "ROTA_POLL": "1s"}
"""Those that a user has who sets nothing."""
SECONDS = 15.0
# A minute: six heartbeats, three looks, two for the lengths of the queues, and a janitor's share.
A_MINUTE = 12
# With their share of the minute, one of each kind may come, whenever that minute began. Polling makes 110.
FEW = A_MINUTE * SECONDS / 60 + 6
TO_REST = 120.0
_TRANSACTIONS = "select xact_commit + xact_rollback from pg_stat_database where datname = $1"


async def transactions(url: str) -> int:
    """Return how many there were, asked from another database, so that the question is not counted."""
    server, _, name = url.rpartition("/")
    connection = await asyncpg.connect(f"{server}/postgres")
    try:
        return int(await connection.fetchval(_TRANSACTIONS, name.partition("?")[0]))
    finally:
        await connection.close()


async def made(url: str, seconds: float) -> int:
    before = await transactions(url)
    await asyncio.sleep(seconds)
    return await transactions(url) - before


async def test_an_idle_worker_makes_twelve_transactions_a_minute_and_begins_at_once(postgres_site: Site) -> None:
    site = postgres_site
    site.worker("idle", SETTINGS)
    # It polls for some seconds before it rests, more on a busy machine; and PostgreSQL may count what a connection did
    # ten seconds later, or an autovacuum of its own. A worker that goes on polling never comes to rest.
    async with asyncio.timeout(TO_REST):
        while await made(site.url, SECONDS) > FEW:
            pass
    run = await site.enqueue("quick")
    await site.final(run, seconds=5.0)
