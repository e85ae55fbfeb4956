"""Databases for tests: a fresh SQLite file, or a fresh database on a real PostgreSQL."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import PostgresCluster, PostgresServer


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[PostgresServer]:
    """The server that tests share (one per test process): take databases from it, leave it running."""
    url = os.environ.get("ROTA_TEST_POSTGRES_URL")
    if url:
        yield PostgresServer(url)
        return
    with PostgresCluster() as cluster:
        yield cluster


@pytest.fixture
def own_postgres_cluster() -> Iterator[PostgresCluster]:
    """A server of one's own, to stop, restart and kill; as durable as in production."""
    with PostgresCluster(fsync=True) as cluster:
        yield cluster


@pytest.fixture
def postgres_url(postgres_cluster: PostgresServer) -> Iterator[str]:
    """A fresh, empty database."""
    url = postgres_cluster.create_database()
    yield url
    postgres_cluster.drop_database(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A database file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'rota.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Each test that asks for it runs once on SQLite and once on PostgreSQL."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
