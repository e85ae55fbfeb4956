"""Runs with keys, dependencies, replicas, parts and deciding limits, inside somebody else's transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import apsw
import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rota import Enqueue as Enqueued
from rota import Follows, Invalid, Job, Order, Rota, RunState, chain
from rota.errors import KeyReused, UnknownRun
from rota.store import Store, open_database
from rota.testing import adrain

Enqueue = Callable[..., Awaitable[str]]


@asynccontextmanager
async def by_apsw(url: str) -> AsyncIterator[Any]:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.row_trace = as_dict = lambda _, row: {str(place): value for place, value in enumerate(row)}
    with connection:
        yield connection
    assert connection.row_trace is as_dict
    connection.close()


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Any]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        yield connection


@asynccontextmanager
async def by_async_psycopg(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection


@asynccontextmanager
async def by_session(url: str) -> AsyncIterator[Any]:
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@asynccontextmanager
async def by_engine(url: str) -> AsyncIterator[Any]:
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@asynccontextmanager
async def by_async_session(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_async_engine(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


WAYS: dict[str, Any] = {
    "apsw": by_apsw,
    "asyncpg": by_asyncpg,
    "psycopg": by_psycopg,
    "async psycopg": by_async_psycopg,
    "session": by_session,
    "engine": by_engine,
    "async session": by_async_session,
    "async engine": by_async_engine,
}
ASYNC = ("asyncpg", "async psycopg", "async session", "async engine")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(way: str, request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("sqlite_url" if way == "apsw" else "postgres_url"))


@pytest.fixture
async def app(url: str) -> AsyncIterator[Rota]:
    store = Store(open_database(url))
    await store.migrate()
    await store.close()
    app = Rota(url)

    @app.job
    def count(pages: list[str]) -> int:
        return len(pages)

    @app.job
    def fetch(url: str) -> list[str]:
        return [url, url]

    @app.job(limit={"max": 1, "by": "url", "when_full": "skip"})
    def one(url: str) -> None: ...

    @app.job(replicas=2)
    def everywhere() -> None: ...

    app.pipeline("both", [{"step": "a", "job": "one", "payload": {"url": "x"}}, {"step": "b", "job": "everywhere"}])
    yield app
    await app.aclose()


def job_of(app: Rota, name: str) -> Job[..., Any]:
    return Job(app, app.registry.newest[name])


async def enqueue(way: str, connection: Any, job: Job[..., Any], **arguments: Any) -> str:
    if way in ASYNC:
        return await job.aenqueue_in(connection, **arguments)
    return job.enqueue_in(connection, **arguments)


async def test_all_kinds_exist_with_the_commit(app: Rota, way: str) -> None:
    client = await app.connect()
    before = await client.enqueue(Order("fetch", {"url": "before"}))
    fetch, one, count = (job_of(app, name) for name in ("fetch", "one", "count"))
    async with WAYS[way](app.config.database_url) as connection:
        keyed = await enqueue(way, connection, fetch.options(key="7"), url="a")
        assert await enqueue(way, connection, fetch.options(key="7"), url="a") == keyed
        request = fetch.options(idempotency_key="r")
        asked = await enqueue(way, connection, request, url="b")
        with pytest.raises(KeyReused):
            await enqueue(way, connection, request, url="other")
        after = await enqueue(way, connection, fetch.options(after=[before, Follows(keyed, on="end")]), url="c")
        taking = await enqueue(way, connection, count.options(inputs={"pages": before}))
        first, second = [await enqueue(way, connection, one, url="x") for _ in range(2)]
        replicated = await enqueue(way, connection, job_of(app, "everywhere"))
        flow = chain(fetch.s("d"), count.s())
        ids = await flow.aenqueue_in(connection) if way in ASYNC else flow.enqueue_in(connection)
        unknown = fetch.options(after=["01980000-0000-7000-8000-000000000000"])
        with pytest.raises(UnknownRun):
            await enqueue(way, connection, unknown, url="e")
        with pytest.raises(Invalid, match="part of an id"):
            await enqueue(way, connection, fetch.options(after=[before.id[-6:]]), url="e")
    assert len(await client.list()) == 1 + 6 + 1 + 2
    again = await client.enqueue(Order("fetch", {"url": "b"}, {"idempotency_key": "r"}))
    assert (again.id, again.created) == (asked, False)
    assert (await client.get(second)).state is RunState.SKIPPED
    assert (await client.get(replicated)).state is RunState.SCHEDULED
    await adrain(app)
    runs = {run.id: run for run in await client.list()}
    assert all(runs[id].state is RunState.SUCCEEDED for id in (keyed, asked, after, taking, first, *ids))
    assert (runs[taking].result, runs[ids[-1]].result) == (2, 2)


async def test_a_rollback_leaves_nothing_and_keys_are_free(app: Rota, way: str) -> None:
    client = await app.connect()
    fetch = job_of(app, "fetch").options(key="7")

    async def broken() -> None:
        async with WAYS[way](app.config.database_url) as connection:
            await enqueue(way, connection, fetch, url="a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken()
    assert await client.list() == []
    assert (await client.enqueue(Order("fetch", {"url": "a"}, {"key": "7"}))).created


async def test_the_connection_of_another_kind_of_database_is_refused(way: str, url: str, sqlite_url: str) -> None:
    app = Rota("postgresql://nowhere/nothing" if way == "apsw" else sqlite_url)

    @app.job
    def fetch(url: str) -> None: ...

    plain, keyed = fetch, fetch.options(key="7")
    async with WAYS[way](url) as connection:
        for job in (plain, keyed):
            with pytest.raises(Invalid, match=r"the connection is to \w+, and rota's database is .*--rota-database"):
                await enqueue(way, connection, job, url="a")


async def test_middleware_completes_what_is_enqueued(app: Rota, way: str, url: str) -> None:
    """It gives a key, by which the enqueue needs its locks: what it adds counts as what the caller gave."""
    seen: list[tuple[str, str | None, bool | None]] = []

    @app.around_enqueue
    def keyed(enqueue: Enqueued) -> Iterator[None]:
        enqueue.options["key"] = str(enqueue.arguments.get("url", "none"))
        yield
        seen.append((enqueue.job, enqueue.run_id, enqueue.created))

    fetch, one = job_of(app, "fetch"), job_of(app, "one")
    async with WAYS[way](url) as connection:
        first = await enqueue(way, connection, fetch, url="a")
        assert await enqueue(way, connection, fetch, url="a") == first
        other = await enqueue(way, connection, one, url="b")
    client = await app.connect()
    assert [run.key for run in await client.get_many([first, other])] == ["a", "b"]
    assert seen == [("fetch", first, True), ("fetch", first, False), ("one", other, True)]


async def test_asynchronous_middleware_needs_an_asynchronous_enqueue(app: Rota, way: str, url: str) -> None:
    left: list[str] = []

    @app.around_enqueue
    def outer(enqueue: Enqueued) -> Iterator[None]:
        try:
            yield
        finally:
            left.append(enqueue.job)

    @app.around_enqueue
    async def slow(enqueue: Enqueued) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        enqueue.options["priority"] = 7
        yield

    client = await app.connect()
    fetch = job_of(app, "fetch")
    async with WAYS[way](url) as connection:
        if way in ASYNC:
            await enqueue(way, connection, fetch, url="a")
        else:
            with pytest.raises(
                Invalid, match=r"the middleware slow is asynchronous, and the enqueue is not .*aenqueue"
            ):
                await enqueue(way, connection, fetch, url="a")
    assert [run.priority for run in await client.list()] == ([7] if way in ASYNC else [])
    assert left == ["fetch"]


async def test_a_connection_for_the_other_kind_of_code_is_refused(app: Rota, way: str, url: str) -> None:
    """Before anything is sent: a coroutine that nobody awaits would enqueue nothing, and hardly say so."""
    for job in (job_of(app, "fetch"), job_of(app, "fetch").options(key="7")):
        async with WAYS[way](url) as connection:
            if way in ASYNC:
                with pytest.raises(Invalid, match=r"is asynchronous .*`await job.aenqueue_in\(connection, …\)`"):
                    job.enqueue_in(connection, url="a")
            else:
                with pytest.raises(Invalid, match=r"is synchronous .*`job.enqueue_in\(connection, …\)`"):
                    await job.aenqueue_in(connection, url="a")
        for nothing in (None, "postgresql://", 5):
            with pytest.raises(Invalid, match=r"is no connection .*psycopg, asyncpg"):
                job.enqueue_in(nothing, url="a")
    assert await (await app.connect()).list() == []


async def test_connections_of_pools(postgres_url: str) -> None:
    app = Rota(postgres_url)

    @app.job
    def fetch(url: str) -> None: ...

    async with asyncpg.create_pool(postgres_url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        with pytest.raises(Invalid, match="asyncpg's PoolConnectionProxy is asynchronous"):
            fetch.enqueue_in(connection, url="a")
        async with connection.transaction():
            run_id = await fetch.aenqueue_in(connection, url="a")
    assert (await (await app.connect()).get(run_id)).job == "fetch"
    await app.aclose()


async def test_it_needs_a_transaction_a_driver_and_what_others_commit(sqlite_url: str, postgres_url: str) -> None:
    def declared(url: str) -> Job[..., Any]:
        app = Rota(url)

        @app.job
        def fetch(url: str) -> None: ...

        return fetch.options(key="7")

    on_sqlite, on_postgres = declared(sqlite_url), declared(postgres_url)
    path = sqlite_url.removeprefix("sqlite:///")
    with pytest.raises(Invalid, match="no transaction to enqueue in"):
        on_sqlite.enqueue_in(apsw.Connection(path), url="a")
    with pytest.raises(Invalid, match="sqlite3's Connection"):
        on_sqlite.enqueue_in(sqlite3.connect(path), url="a")
    connection = await asyncpg.connect(postgres_url)
    with pytest.raises(Invalid, match="no transaction to enqueue in"):
        await on_postgres.aenqueue_in(connection, url="a")
    with pytest.raises(Invalid, match="that is repeatable read"):
        async with connection.transaction(isolation="repeatable_read"):
            await on_postgres.aenqueue_in(connection, url="a")
    await connection.close()
    with psycopg.connect(postgres_url, autocommit=True) as autocommit, pytest.raises(Invalid, match="no transaction"):
        on_postgres.enqueue_in(autocommit, url="a")
