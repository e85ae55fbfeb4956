"""Migrations: restartable, one at a time, never backwards, and never silently on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from rota.errors import BadConfig, SchemaOutdated, Unavailable
from rota.store import Store, open_database, open_store
from rota.store.databases.database import Tx
from rota.store.databases.statements import Dialect, Migration, migrations
from rota.store.schema import migrate
from tests.support.databases.postgres import PostgresServer, database_name
from tests.support.runs.runs import claim, make

NEWEST = migrations(open_database("sqlite:///unused.db").dialect)[-1].version


@pytest.fixture
async def fresh(new_database_url: str) -> AsyncIterator[Store]:
    store = Store(open_database(new_database_url))
    yield store
    await store.close()


def plain(beyond: int, name: str, script: str) -> Migration:
    """Build a migration that serves no older program."""
    return Migration(NEWEST + beyond, name, script, NEWEST + beyond)


def extended(monkeypatch: pytest.MonkeyPatch, *more: Migration) -> None:
    monkeypatch.setattr(migrate, "migrations", lambda dialect: [*migrations(dialect), *more])


async def tables(store: Store) -> set[str]:
    """Return the tables of this test's own migrations that exist."""

    async def body(tx: Tx) -> set[str]:
        found = set()
        for name in ("one", "two"):
            catalogue = "pg_tables where tablename" if tx.dialect.numbered else "sqlite_master where name"
            if (await tx.fetch_sql(f"select count(*) from {catalogue} = :name", name=name))[0][0]:
                found.add(name)
        return found

    return await store.database.read(body)


async def test_applied_once_and_in_order(fresh: Store) -> None:
    assert await fresh.migrate() == [one.name for one in migrations(fresh.database.dialect)]
    assert await migrate.check(fresh.database) == (NEWEST, NEWEST)
    assert await fresh.migrate() == []
    await fresh.require_schema()


async def test_a_killed_migration_continues_where_it_was(fresh: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = plain(1, "one", "create table one (n integer)")
    broken = plain(2, "two", "create table two (n integer); select * from nowhere")
    extended(monkeypatch, first, broken)
    with pytest.raises(Unavailable):
        await fresh.migrate()
    assert await migrate.check(fresh.database) == (NEWEST + 1, NEWEST + 2)
    assert await tables(fresh) == {"one"}
    extended(monkeypatch, first, plain(2, "two", "create table two (n integer)"))
    assert await fresh.migrate() == ["two"]
    assert await tables(fresh) == {"one", "two"}


async def test_an_exception_between_statements_leaves_nothing_behind(
    fresh: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        """The process dies here."""

    async def dies(tx: Tx) -> int:
        if await original(tx) == NEWEST:
            raise Killed
        return await original(tx)

    original = migrate.current_version
    extended(monkeypatch, plain(1, "one", "create table one (n integer)"))
    monkeypatch.setattr(migrate, "current_version", dies)
    with pytest.raises(Killed):
        await fresh.migrate()
    monkeypatch.setattr(migrate, "current_version", original)
    assert await migrate.check(fresh.database) == (NEWEST, NEWEST + 1)
    assert await fresh.migrate() == ["one"]


async def test_many_migrators_at_once_apply_each_migration_once(fresh: Store, new_database_url: str) -> None:
    stores = [fresh, *[Store(open_database(new_database_url)) for _ in range(4)]]
    applied = await asyncio.gather(*[store.migrate() for store in stores])
    for store in stores[1:]:
        await store.close()
    assert sorted(name for names in applied for name in names) == sorted(
        one.name for one in migrations(fresh.database.dialect)
    )


async def test_a_newer_schema_is_refused(fresh: Store, monkeypatch: pytest.MonkeyPatch, new_database_url: str) -> None:
    with monkeypatch.context() as future:
        extended(future, plain(1, "one", "create table one (n integer)"))
        await fresh.migrate()
    with pytest.raises(SchemaOutdated, match="install a newer rota"):
        await fresh.migrate()
    with pytest.raises(SchemaOutdated, match="install a newer rota"):
        await fresh.require_schema()
    with pytest.raises(SchemaOutdated):
        await open_store(new_database_url)


async def test_an_older_schema_is_refused_with_what_to_do(fresh: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await fresh.migrate()
    extended(monkeypatch, plain(1, "one", "create table one (n integer)"))
    with pytest.raises(SchemaOutdated, match="rota migrate"):
        await fresh.require_schema()


async def test_sqlite_is_brought_up_to_date_when_opened(new_sqlite_url: str) -> None:
    store = await open_store(new_sqlite_url)
    await store.require_schema()
    await store.close()


async def test_postgres_is_never_migrated_silently(new_postgres_url: str) -> None:
    with pytest.raises(SchemaOutdated, match="rota migrate"):
        await open_store(new_postgres_url)
    store = Store(open_database(new_postgres_url))
    assert (await migrate.check(store.database))[0] == 0
    await store.migrate()
    await store.close()
    opened = await open_store(new_postgres_url)
    assert await claim(opened) == []
    await opened.close()


async def test_a_database_without_tables_says_what_to_do(new_postgres_url: str) -> None:
    store = Store(open_database(new_postgres_url))
    with pytest.raises(Unavailable, match="rota migrate"):
        await store.enqueue([make()])
    await store.close()


async def test_a_migration_may_take_longer_than_a_call(new_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extended(monkeypatch, plain(1, "one", "select pg_sleep(1); create table one (n integer)"))
    deadline = timedelta(milliseconds=500)
    stores = [Store(open_database(new_postgres_url, deadline=deadline)) for _ in range(2)]
    applied = await asyncio.gather(*[store.migrate() for store in stores])  # the other one waits for the lock as long
    own = [one.name for one in migrations(stores[0].database.dialect)]
    assert sorted(name for names in applied for name in names) == sorted(["one", *own])
    assert await tables(stores[0]) == {"one"}
    for store in stores:
        await store.close()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_cannot_hold_every_text_is_refused(
    postgres_cluster: PostgresServer, encoding: str
) -> None:
    url = postgres_cluster.create_database()
    name, odd = database_name(url), f"{database_name(url)}_odd"
    admin = await asyncpg.connect(postgres_cluster.url)
    await admin.execute(f"create database {odd} template template0 encoding '{encoding}' locale 'C'")
    store = Store(open_database(url.replace(name, odd)))
    for ask in (store.migrate, store.require_schema):
        with pytest.raises(BadConfig, match=rf"{encoding}[\s\S]*UTF8"):
            await ask()
    await store.close()
    await admin.execute(f"drop database {odd} with (force)")
    await admin.close()
    postgres_cluster.drop_database(url)


def test_numbers_follow_each_other() -> None:
    dialect: Dialect = open_database("sqlite:///unused.db").dialect
    assert [one.version for one in migrations(dialect)] == list(range(1, NEWEST + 1))
