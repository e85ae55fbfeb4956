"""Transactions that a handler works in: its own errors reach it, and nobody is kept waiting for ever."""

from __future__ import annotations

import asyncio

import apsw
import asyncpg
import pytest

from rota.core.states import RunState
from rota.errors import DeadlineExceeded, LeaseLost
from rota.store import Store
from rota.store.databases.postgres.postgres import PostgresDatabase
from rota.store.databases.sqlite.sqlite import SqliteDatabase
from tests.support.runs.runs import put, state_of
from tests.support.wait import until


async def names(store: Store) -> list[str]:
    return [row[0] for row in await store.database.read(lambda tx: tx.fetch_sql("select name from account"))]


@pytest.fixture
async def books(store: Store) -> Store:
    await store.database.transact(lambda tx: tx.script("create table if not exists account (name text)"))
    await store.database.transact(lambda tx: tx.script("delete from account"))
    return store


@pytest.mark.parametrize("error", [LookupError("its own"), LeaseLost("its own", 1)])
async def test_an_error_of_the_handler_survives_the_end_of_the_connection(
    postgres_database: PostgresDatabase, error: Exception
) -> None:
    other = await asyncpg.connect(postgres_database.url)

    async def fail() -> None:
        async with postgres_database.session() as session:
            ((pid,),) = await session.execute("select pg_backend_pid()", ())
            await other.execute("select pg_terminate_backend($1)", pid)
            raise error

    with pytest.raises(type(error), match="its own"):
        await fail()
    await other.close()
    async with postgres_database.session() as session:  # on another connection
        assert await session.execute("select 1", ()) == [(1,)]


async def test_an_error_rolls_back_and_the_next_one_is_committed(books: Store) -> None:
    async def fail() -> None:
        async with books.database.session() as session:
            await session.execute("insert into account values ('ada')", ())
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    async with books.database.session() as session:
        await session.execute("insert into account values ('bob')", ())
    assert await names(books) == ["bob"]


@pytest.fixture
async def sqlite_books(sqlite_store: Store) -> Store:
    await sqlite_store.database.transact(lambda tx: tx.script("create table account (name text)"))
    return sqlite_store


async def test_one_that_stays_open_too_long_is_rolled_back(
    sqlite_books: Store, sqlite_database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.store.databases.held_transaction._LONGEST", 0.05, raising=False)
    others: list[str] = []

    async def stay() -> None:
        async with sqlite_database.session() as session:
            await session.execute("insert into account values ('ada')", ())
            others.append(await put(sqlite_books))  # others wait for the file, and not in vain

    with pytest.raises(DeadlineExceeded):
        await stay()
    assert await state_of(sqlite_books, others[0]) is RunState.QUEUED
    assert await names(sqlite_books) == []


async def test_after_that_nothing_of_it_is_written(
    sqlite_books: Store, sqlite_database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.store.databases.held_transaction._LONGEST", 0.05, raising=False)

    async def stay() -> None:
        async with sqlite_database.session() as session:
            await put(sqlite_books)
            with pytest.raises(apsw.ConnectionClosedError):
                session.connection.execute("insert into account values ('ada')")
            await session.execute("insert into account values ('bob')", ())

    with pytest.raises(DeadlineExceeded):
        await stay()
    assert await names(sqlite_books) == []


async def test_a_statement_that_takes_too_long_is_interrupted(
    sqlite_books: Store, sqlite_database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.store.databases.held_transaction._LONGEST", 0.05, raising=False)
    long = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000000) select count(*) from n"

    async def stay() -> None:
        async with sqlite_database.session() as session:
            await session.execute("insert into account values ('ada')", ())
            await session.execute(long, ())

    with pytest.raises(DeadlineExceeded):
        await stay()
    assert await names(sqlite_books) == []


async def test_the_time_that_it_waits_for_others_is_not_its_own(
    sqlite_books: Store, sqlite_database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def second() -> None:
        async with sqlite_database.session() as session:
            await session.execute("insert into account values ('bob')", ())

    async with sqlite_database.session() as session:
        await session.execute("insert into account values ('ada')", ())
        monkeypatch.setattr("rota.store.databases.held_transaction._LONGEST", 0.05, raising=False)
        waiting = asyncio.create_task(second())
        await asyncio.wait([waiting], timeout=0.3)
    await until(waiting.done)
    await waiting
    assert sorted(await names(sqlite_books)) == ["ada", "bob"]
