"""Test an app on a pool of the application's own: `Rota(url, pool=pool)`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from rota import Context, Handle, Job, Rota, RunState, Unavailable
from rota.errors import BadConfig
from rota.store import Store

_CONNECTED = "select application_name, count(*) from pg_stat_activity where datname = current_database() group by 1"
_CUT = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'shop'"


@pytest.fixture
async def pool(postgres_store: Store, postgres_url: str) -> AsyncIterator[asyncpg.Pool[Any]]:
    settings = {"application_name": "shop"}
    async with asyncpg.create_pool(postgres_url, min_size=1, max_size=3, server_settings=settings) as pool:
        yield pool


def shop_on(url: str, **options: Any) -> Rota:
    app = Rota(url, **options)

    @app.job(max_attempts=2, backoff="0s")
    async def ship(ctx: Context, order: int) -> int:
        if ctx.attempt == 1:
            raise ValueError
        async with ctx.transaction() as transaction:
            await transaction.execute("create table if not exists shipped (id int)")
            await transaction.execute("insert into shipped values ($1)", order)
        return order

    @app.job(max_concurrency=1)
    def sweep(day: str) -> str:
        return day

    return app


def job_of(app: Rota, name: str) -> Job[..., Any]:
    return Job(app, app.registry.newest[name])


async def ship(app: Rota, order: int) -> Handle[Any]:
    return await job_of(app, "ship").aenqueue(order=order)


async def test_what_it_needs_in_its_loop_comes_from_the_pool(pool: asyncpg.Pool[Any], postgres_url: str) -> None:
    app = shop_on(postgres_url, pool=pool)
    handle = await ship(app, 7)
    keyed = job_of(app, "sweep").options(key="one")
    async with pool.acquire() as connection, connection.transaction():
        first = await keyed.aenqueue_in(connection, day="monday")
        assert await keyed.aenqueue_in(connection, day="monday") == first
    handles = [await keyed.aenqueue(day="monday"), *await job_of(app, "sweep").aenqueue_many([{"day": "x"}] * 20)]
    assert (handles[0].id, handles[0].created) == (first, False)
    async with app.running():
        assert await handle.aresult("60s") == 7
        for each in handles:
            assert await each.aresult("60s") in ("monday", "x")
        assert await asyncio.to_thread(app.blocking.wait, first, "60s")  # another loop, which connects by the URL
    assert not pool.is_closing()
    assert await pool.fetchval("select count(*) from shipped") == 1


async def test_it_opens_no_connections_beside_the_pool(pool: asyncpg.Pool[Any], postgres_url: str) -> None:
    before = dict(await pool.fetch(_CONNECTED))
    app = shop_on(postgres_url, pool=pool)
    await ship(app, 7)
    await asyncio.gather(*(ship(app, order) for order in range(20)))
    after = dict(await pool.fetch(_CONNECTED))
    assert after.pop("shop") > 0
    before.pop("shop")
    assert after == before
    await app.aclose()


async def test_a_connection_that_breaks_is_replaced(pool: asyncpg.Pool[Any], postgres_url: str) -> None:
    app = shop_on(postgres_url)
    app.configure(pool=pool, lease=timedelta(seconds=30))
    first = await ship(app, 1)
    client = await app.connect()
    async with asyncio.timeout(30):
        for _ in range(3):
            with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
                await pool.execute(_CUT)
            assert (await client.get(first.id)).state is RunState.QUEUED
    await app.aclose()
    await pool.close()
    closed = shop_on(postgres_url, pool=pool)
    with pytest.raises(Unavailable, match="pool is clos"):
        await ship(closed, 2)


async def test_a_pool_that_would_mislead_is_refused(
    postgres_store: Store, postgres_url: str, new_postgres_url: str, sqlite_url: str
) -> None:
    async def with_codec(connection: asyncpg.Connection[Any]) -> None:
        await connection.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog")

    async def with_json(connection: asyncpg.Connection[Any]) -> None:
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")

    async def first(url: str, **options: Any) -> str:
        async with asyncpg.create_pool(url, min_size=0, max_size=1, **options) as pool:
            app = shop_on(postgres_url, pool=pool)
            try:
                return (await ship(app, 1)).id
            finally:
                await app.aclose()

    assert await first(postgres_url, init=with_json)
    with pytest.raises(BadConfig, match="convert uuid"):
        await first(postgres_url, init=with_codec)
    with pytest.raises(BadConfig, match="another database"):
        await first(new_postgres_url)
    with pytest.raises(BadConfig, match="are serializable"):
        await first(postgres_url, server_settings={"default_transaction_isolation": "serializable"})
    with pytest.raises(BadConfig, match="needs the URL of its database"):
        shop_on(sqlite_url, pool=object())
    with pytest.raises(BadConfig, match="of asyncpg"):
        await ship(shop_on(postgres_url, pool=object()), 1)
