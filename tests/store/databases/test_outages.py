"""The database away, wrong, full, or gone in the middle: a clear error soon, nothing partial, and recovery."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from rota.core.states import Outcome, RunState
from rota.errors import BadConfig, DeadlineExceeded, Unavailable
from rota.store import Store, open_database, open_store
from rota.store.databases.database import Tx
from rota.store.databases.postgres import postgres
from rota.store.databases.postgres.postgres import PostgresDatabase
from tests.support.databases.postgres import PostgresServer
from tests.support.runs.runs import claim, finish, make, put, state_of, tell
from tests.support.wait import PATIENCE


@pytest.fixture
async def silent_server() -> AsyncIterator[str]:
    """Accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"postgresql://someone@127.0.0.1:{server.getsockname()[1]}/nothing"


@pytest.fixture
def nobodys_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_an_unreachable_postgres_is_told_soon(nobodys_port: int) -> None:
    store = Store(open_database(f"postgresql://someone@127.0.0.1:{nobodys_port}/nothing"))
    began = time.monotonic()
    with pytest.raises(Unavailable):
        await store.now()
    assert time.monotonic() - began < 5
    await store.close()


async def test_a_silent_postgres_meets_the_deadline(silent_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_CONNECT", 0.2)
    store = Store(open_database(silent_server))
    with pytest.raises(DeadlineExceeded):
        await store.now()
    await store.close()


async def test_a_statement_that_hangs_meets_the_deadline(
    postgres_store: Store, postgres_database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await put(postgres_store, key="k")
    other = await asyncpg.connect(postgres_database.url)
    async with other.transaction():
        await other.execute("select from rota_unique for update")
        monkeypatch.setattr(postgres_database, "deadline", timedelta(milliseconds=300))
        with pytest.raises(DeadlineExceeded):
            await postgres_store.enqueue([make(key="k")])
        monkeypatch.undo()
    await other.close()
    assert (await postgres_store.enqueue([make(key="k")]))[0].id == run_id


@pytest.mark.parametrize(
    "url",
    ["", "rota.db", "mysql://host/db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://host/file.db"],
)
def test_a_url_that_names_no_database(url: str) -> None:
    with pytest.raises(BadConfig, match="sqlite:///"):
        open_database(url)


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:notaport/db", "postgresql://127.0.0.1/db?sslmode=perhaps"])
async def test_a_url_that_postgres_does_not_understand(url: str) -> None:
    store = Store(open_database(url))
    with pytest.raises(BadConfig):
        await store.now()


async def test_a_postgres_without_that_database(postgres_cluster: PostgresServer) -> None:
    store = Store(open_database(postgres_cluster.url.rpartition("/")[0] + "/no_such_database"))
    with pytest.raises(BadConfig, match="no database"):
        await store.now()


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    path.write_text("this is a letter, not a database" * 100)
    with pytest.raises(BadConfig, match="not an SQLite database"):
        await open_store(f"sqlite:///{path}")
    assert path.read_text().startswith("this is a letter")


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="folder"):
        await open_store(f"sqlite:///{tmp_path / 'missing' / 'rota.db'}")


async def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/a%20b%3Fc.db")
    await store.close()
    assert (tmp_path / "a b?c.db").exists()


async def limit_pages(store: Store, pages: int) -> None:
    async def body(tx: Tx) -> None:
        await tx.script(f"pragma max_page_count = {pages}")

    await store.database.transact(body)


async def test_a_full_disk_is_told_and_leaves_nothing_partial(sqlite_store: Store) -> None:
    held_id = await put(sqlite_store)
    (held,) = await claim(sqlite_store)
    await limit_pages(sqlite_store, 1)  # SQLite makes that the present size
    with pytest.raises(Unavailable, match="full"):
        await sqlite_store.enqueue([make(payload={"text": "x" * 1_000}) for _ in range(200)])
    assert await sqlite_store.queue_counts() == [("default", 1, 0, 0)]
    assert await state_of(sqlite_store, held_id) is RunState.RUNNING
    await limit_pages(sqlite_store, 1_000_000)
    await sqlite_store.enqueue([make() for _ in range(200)])
    assert await sqlite_store.queue_counts() == [("default", 1, 200, 0)]
    await finish(sqlite_store, held)


async def test_a_full_disk_fails_everybody_in_the_group_and_nobody_for_ever(sqlite_store: Store) -> None:
    """One of the group has failed on its own account already when the disk turns out to be full."""
    await put(sqlite_store, key="k")
    await limit_pages(sqlite_store, 1)
    too_big = [make(payload={"text": "x" * 1_000}) for _ in range(200)]
    calls = [
        sqlite_store.enqueue([make()]),
        sqlite_store.enqueue([make(key="k", unique={"on_conflict": "reject"})]),
        sqlite_store.enqueue(too_big),
        sqlite_store.enqueue([make()]),
    ]
    async with asyncio.timeout(PATIENCE):
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(answers[2], Unavailable)
        await limit_pages(sqlite_store, 1_000_000)
        written = sum(not isinstance(answer, BaseException) for answer in answers)
        assert await sqlite_store.queue_counts() == [("default", 0, 1 + written, 0)]


async def test_cut_connections_are_replaced(postgres_store: Store, postgres_database: PostgresDatabase) -> None:
    await asyncio.gather(*[postgres_store.now() for _ in range(4)])
    await cut(postgres_database.url)
    await postgres_store.enqueue([make()])
    (held,) = await claim(postgres_store)
    await cut(postgres_database.url)
    assert await tell(postgres_store, held, Outcome.SUCCEEDED)


async def test_a_connection_cut_inside_a_transaction_leaves_nothing(
    postgres_store: Store, postgres_database: PostgresDatabase
) -> None:
    tries = 0

    async def body(tx: Tx) -> None:
        nonlocal tries
        tries += 1
        await tx.hot.enqueue([make()])
        if tries == 1:
            await cut(postgres_database.url)
            await tx.fetch("now")

    await postgres_database.transact(body)
    assert tries == 2
    assert await postgres_store.queue_counts() == [("default", 0, 1, 0)]


async def test_a_claim_cut_off_is_told_and_not_repeated(
    postgres_store: Store, postgres_database: PostgresDatabase
) -> None:
    async def body(tx: Tx) -> None:
        await cut(postgres_database.url)
        await tx.fetch("now")

    with pytest.raises(Unavailable):
        await postgres_database.transact(body, repeatable=False)
    await put(postgres_store)
    assert len(await claim(postgres_store)) == 1


async def cut(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    await connection.close()


async def test_a_cancelled_caller_leaves_the_store_usable(store: Store) -> None:
    for _ in range(5):
        task = asyncio.create_task(store.enqueue([make()]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await put(store)
    assert await claim(store)
