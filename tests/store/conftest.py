"""A migrated store, a second one on the same database as another process would have it, and a clock for both."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from rota.store import Store, open_database
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.store.databases.sqlite.sqlite import SqliteDatabase
from tests.support.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(database_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    opened = Store(open_database(database_url, clock))
    yield opened
    await opened.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "a task is left"


@pytest.fixture
def woken(store: Store, monkeypatch: pytest.MonkeyPatch) -> set[str | None]:
    """The queues that the store's transactions have woken so far; nobody is told."""
    queues: set[str | None] = set()
    monkeypatch.setattr(store.database, "notify", queues.update)
    return queues


@pytest.fixture
async def second(store: Store, database_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    """The same database through connections of its own."""
    opened = Store(open_database(database_url, clock))
    yield opened
    await opened.close()


@pytest.fixture
async def sqlite_store(sqlite_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    opened = Store(open_database(sqlite_url, clock))
    yield opened
    await opened.close()


@pytest.fixture
async def postgres_store(postgres_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    opened = Store(open_database(postgres_url, clock))
    yield opened
    await opened.close()


@pytest.fixture
def sqlite_database(sqlite_store: Store) -> SqliteDatabase:
    return cast("SqliteDatabase", sqlite_store.database)


@pytest.fixture
def postgres_database(postgres_store: Store) -> PostgresDatabase:
    return cast("PostgresDatabase", postgres_store.database)
