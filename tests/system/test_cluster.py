"""Test the PostgreSQL cluster that other tests use: it restarts, dies, recovers, and leaves nothing behind."""

from pathlib import Path

import asyncpg
import pytest

from tests.support.databases.postgres import PostgresCluster, PostgresMissing, PostgresServer, find_binaries


async def remember(url: str, number: int) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE IF NOT EXISTS kept (number int)")
    await connection.execute("INSERT INTO kept VALUES ($1)", number)
    await connection.close()


async def remembered(url: str) -> list[int]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT number FROM kept ORDER BY number")
    await connection.close()
    return [row["number"] for row in rows]


async def test_what_was_committed_survives_restart_crash_and_kill(own_postgres_cluster: PostgresCluster) -> None:
    cluster = own_postgres_cluster
    url = cluster.create_database()
    await remember(url, 1)
    cluster.restart()
    await remember(url, 2)
    cluster.restart("immediate")
    await remember(url, 3)
    bystander = await asyncpg.connect(url)
    cluster.kill9()
    assert not cluster.running
    cluster.start()
    assert await remembered(url) == [1, 2, 3]
    bystander.terminate()


def test_a_closed_cluster_leaves_no_folder() -> None:
    with PostgresCluster() as cluster:
        folder = cluster._folder
        assert folder.exists()
    assert not folder.exists()


async def test_a_database_is_copied_from_a_template(postgres_cluster: PostgresServer) -> None:
    original = postgres_cluster.create_database()
    await remember(original, 7)
    copy = postgres_cluster.create_database(template=original)
    assert await remembered(copy) == [7]
    for url in (copy, original):
        postgres_cluster.drop_database(url)


async def test_backends_are_terminated(postgres_cluster: PostgresServer) -> None:
    url = postgres_cluster.create_database()
    connection = await asyncpg.connect(url)
    assert postgres_cluster.terminate_backends(url) == 1
    with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, ConnectionError)):
        await connection.execute("SELECT 1")


def test_a_wrong_choice_of_binaries_is_an_error_that_names_the_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_TEST_POSTGRES_BIN", str(tmp_path))
    with pytest.raises(PostgresMissing, match="ROTA_TEST_POSTGRES_URL"):
        find_binaries()


def test_every_database_is_offered(database_url: str) -> None:
    assert database_url.startswith(("sqlite:///", "postgresql://"))
