"""Enqueue inside somebody else's transaction: the run exists if, and as soon as, they commit."""

import sqlite3
from types import ModuleType
from typing import Any

import apsw
import asyncpg
import pytest

from rota import Job, Rota
from rota.core.states import RunState
from rota.errors import BadPayload, JobDisabled, Unavailable
from rota.store import Store, open_database, open_store
from rota.store.databases import foreign_connection
from tests.support.runs.runs import claim, claim_limited, state_of


def mail_app(url: str) -> tuple[Rota, Job[[str], None]]:
    app = Rota(url)

    @app.job(name="work", on_lost="fail", priority=3)
    def mail(to: str) -> None:
        """Never called here."""

    return app, mail


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


@pytest.fixture
async def opened(sqlite_url: str) -> Any:
    store = await open_store(sqlite_url)
    yield store
    await store.close()


async def test_sqlite_commit_makes_it_claimable(opened: Store, sqlite_url: str) -> None:
    _, mail = mail_app(sqlite_url)
    connection = apsw.Connection(path_of(sqlite_url))
    connection.execute("create table orders (n integer)")
    with connection:
        connection.execute("insert into orders values (1)")
        run_id = mail.enqueue_in(connection, "me@example.com")
        assert await opened.queue_counts() == []
    connection.close()
    run = await opened.get_run(run_id)
    assert (run.state, run.payload, run.priority) == (RunState.QUEUED, {"to": "me@example.com"}, 3)
    assert await claim(opened, solo=False) == []
    (held,) = await claim(opened)
    assert held.run_id == run_id


async def test_sqlite_rollback_leaves_nothing(opened: Store, sqlite_url: str) -> None:
    _, mail = mail_app(sqlite_url)
    connection = apsw.Connection(path_of(sqlite_url))
    connection.execute("begin")
    mail.enqueue_in(connection, "me@example.com")
    connection.execute("rollback")
    connection.close()
    assert await opened.queue_counts() == []


async def test_sqlite_options_are_kept(opened: Store, sqlite_url: str) -> None:
    _, mail = mail_app(sqlite_url)
    connection = apsw.Connection(path_of(sqlite_url))
    later = mail.options(delay="1h", queue="slow", tags=["x"]).enqueue_in(connection, "me@example.com")
    connection.close()
    run = await opened.get_run(later)
    assert (run.state, run.queue, run.tags) == (RunState.SCHEDULED, "slow", ("x",))


async def test_pythons_sqlite3_is_refused_if_too_old_or_if_rota_has_the_file_open(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, mail = mail_app(sqlite_url)
    connection = sqlite3.connect(path_of(sqlite_url))
    connection.row_factory = lambda cursor, row: {
        named[0]: value for named, value in zip(cursor.description, row, strict=True)
    }
    monkeypatch.setattr(foreign_connection, "sqlite3", lookalike((3, 51, 2)))
    with pytest.raises(Unavailable, match="use apsw"):
        mail.enqueue_in(connection, "me@example.com")
    monkeypatch.setattr(foreign_connection, "sqlite3", lookalike((3, 51, 3)))
    with connection:
        run_id = mail.enqueue_in(connection, "me@example.com")
    opened = await open_store(sqlite_url)
    assert await state_of(opened, run_id) is RunState.QUEUED
    with pytest.raises(Unavailable, match="another copy of SQLite"):
        mail.enqueue_in(connection, "me@example.com")
    await opened.close()
    with connection:
        mail.enqueue_in(connection, "me@example.com")
    connection.close()


def lookalike(version: tuple[int, int, int]) -> ModuleType:
    module = ModuleType("sqlite3")
    module.__dict__.update(
        Connection=sqlite3.Connection, sqlite_version_info=version, sqlite_version=".".join(map(str, version))
    )
    return module


async def test_postgres_commit_makes_it_claimable(postgres_store: Store, postgres_url: str) -> None:
    _, mail = mail_app(postgres_url)
    connection = await asyncpg.connect(postgres_url)
    async with connection.transaction():
        run_id = await mail.aenqueue_in(connection, "me@example.com")
        later = await mail.options(delay="1h").aenqueue_in(connection, "you@example.com")
        assert await claim(postgres_store) == []
    await connection.close()
    (held,) = await claim(postgres_store)
    assert (held.run_id, held.payload, held.rank) == (run_id, '{"to":"me@example.com"}', -3)
    assert await state_of(postgres_store, later) is RunState.SCHEDULED


async def test_postgres_rollback_leaves_nothing(postgres_store: Store, postgres_url: str) -> None:
    _, mail = mail_app(postgres_url)
    connection = await asyncpg.connect(postgres_url)
    transaction = connection.transaction()
    await transaction.start()
    await mail.aenqueue_in(connection, "me@example.com")
    await transaction.rollback()
    await connection.close()
    assert await postgres_store.queue_counts() == []


@pytest.mark.parametrize(("style", "first"), [("numeric", "$1"), ("format", "%s"), ("named", ":id")])
def test_each_driver_gets_its_own_notation(style: str, first: str) -> None:
    app, mail = mail_app("postgresql://nowhere/nothing")
    run = app.prepare_locally(mail._order(("me@example.com",), {}))
    (sql, values), (hint, _) = foreign_connection.statements(run, app.dialect, style)
    assert hint.startswith("select pg_notify('rota', ")
    assert first in sql
    assert ":now" not in sql
    assert "clock_timestamp()" in sql
    if style == "named":
        assert values["payload"] == run.payload
    else:
        assert values[0] == run.id
        assert len(values) == (sql.count("%s") or len(values))


def test_it_is_checked_like_any_enqueue() -> None:
    app, mail = mail_app("sqlite:///never-opened.db")
    with pytest.raises(BadPayload, match=r"\$\.to"):
        mail.enqueue_in(apsw.Connection(":memory:"), 5)  # type: ignore[arg-type]

    @app.job(enabled=False)
    def off() -> None:
        """Never called here."""

    with pytest.raises(JobDisabled):
        off.enqueue_in(apsw.Connection(":memory:"))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_limited_run_comes_under_its_limit_after_the_commit(
    kind: str, sqlite_url: str, request: pytest.FixtureRequest
) -> None:
    url: str = sqlite_url if kind == "sqlite" else request.getfixturevalue("postgres_url")
    store = Store(open_database(url))
    await store.migrate()
    app = Rota(url)

    @app.job(name="work", max_concurrency=1, limit={"max": 1, "by": "to"})
    def mail(to: str) -> None:
        """Never called here."""

    if kind == "sqlite":
        connection = apsw.Connection(path_of(url))
        made = [mail.enqueue_in(connection, to) for to in ("a", "b")]
        connection.close()
    else:
        other = await asyncpg.connect(url)
        async with other.transaction():
            made = [await mail.aenqueue_in(other, to) for to in ("a", "b")]
            assert await claim_limited(store) == []
        await other.close()
    assert await claim(store) == []
    assert (await store.promote(10)).count == 2
    (held,) = await claim_limited(store)
    assert held.run_id in made
    assert await claim_limited(store) == []
    await store.close()
