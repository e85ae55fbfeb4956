"""A database for the explorer, which empties it by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.explorer.explorer import Explorer, explorer_on
from tests.support.databases.postgres import PostgresServer


@pytest.fixture(scope="module")
def explored_url(postgres_cluster: PostgresServer, postgres_template: str) -> Iterator[str]:
    url = postgres_cluster.create_database(postgres_template)
    yield url
    postgres_cluster.drop_database(url)


@pytest.fixture
async def explorer(explored_url: str) -> AsyncIterator[Explorer]:
    made = await explorer_on(explored_url)
    yield made
    await made.close()
