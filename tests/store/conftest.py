"""A migrated store, a second one on the same database as another process would have it, and a clock for both."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import cast

import asyncpg
import pytest

from rota.store import Store, open_database
from rota.store.postgres import PostgresDatabase
from rota.store.sqlite import SqliteDatabase
from tests.support.clock import ManualClock
from tests.support.postgres import PostgresServer


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_cluster: PostgresServer, postgres_template: str) -> Iterator[str]:
    """A migrated database that tests use in turn: emptying it is cheaper than making another."""
    url = postgres_cluster.create_database(postgres_template)
    yield url
    postgres_cluster.drop_database(url)


@pytest.fixture
async def migrated_postgres_url(shared_postgres_url: str) -> AsyncIterator[str]:
    yield shared_postgres_url
    connection = await asyncpg.connect(shared_postgres_url)
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    tables = await connection.fetch("select tablename from pg_tables where tablename like 'rota%'")
    names = [table["tablename"] for table in tables if table["tablename"] != "rota_migration"]
    look = " union all ".join(f"select '{name}' where exists (select 1 from {name})" for name in names)
    if filled := [row[0] for row in await connection.fetch(look)]:  # to empty what is empty takes as long
        await connection.execute(f"truncate {', '.join(filled)}")
    await connection.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Each test that asks for a store runs once on SQLite and once on PostgreSQL."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "migrated_postgres_url")
    return url


@pytest.fixture
async def store(store_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    opened = Store(open_database(store_url, clock))
    await opened.migrate()
    yield opened
    await opened.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "a task is left"


@pytest.fixture
async def second(store: Store, store_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    """The same database through connections of its own."""
    opened = Store(open_database(store_url, clock))
    yield opened
    await opened.close()


@pytest.fixture
async def sqlite_store(sqlite_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    opened = Store(open_database(sqlite_url, clock))
    await opened.migrate()
    yield opened
    await opened.close()


@pytest.fixture
async def postgres_store(migrated_postgres_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    opened = Store(open_database(migrated_postgres_url, clock))
    yield opened
    await opened.close()


@pytest.fixture
def sqlite_database(sqlite_store: Store) -> SqliteDatabase:
    return cast("SqliteDatabase", sqlite_store.database)


@pytest.fixture
def postgres_database(postgres_store: Store) -> PostgresDatabase:
    return cast("PostgresDatabase", postgres_store.database)
