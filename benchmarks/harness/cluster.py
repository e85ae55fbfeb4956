"""The PostgreSQL all contenders share: private, durable, the same settings for each, one database per measurement."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Self

import asyncpg

from benchmarks.harness import cpu
from tests.support.databases.postgres import PostgresCluster

SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
}


class Cluster:
    """`own` settings are for a measure that needs others; `server` is for one that stops it, and then looks again."""

    def __init__(self, **own: str) -> None:
        self.settings = {**SETTINGS, **own}
        self.server = PostgresCluster(fsync=True, settings=self.settings)
        self.pid: int | None = None

    async def __aenter__(self) -> Self:
        self.server.__enter__()
        await self.look_again()
        return self

    async def look_again(self) -> None:
        """Which process it is now."""
        async with self.connect(self.server.url) as connection:
            self.pid = cpu.parent(await connection.fetchval("select pg_backend_pid()"))

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    @contextmanager
    def database(self) -> Iterator[str]:
        """A new database, dropped afterwards: what one contender leaves behind must not slow the next one."""
        url = self.server.create_database()
        try:
            yield url
        finally:
            self.server.drop_database(url)

    @staticmethod
    @asynccontextmanager
    async def connect(url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        connection = await asyncpg.connect(url)
        try:
            yield connection
        finally:
            await connection.close()

    async def settle(self, url: str) -> None:
        """Statistics for everyone (some peers lose half without), and no checkpoint left for the measured part."""
        async with self.connect(url) as connection:
            await connection.execute("vacuum analyze")
            await connection.execute("checkpoint")

    async def version(self) -> str:
        async with self.connect(self.server.url) as connection:
            return f"PostgreSQL {await connection.fetchval('show server_version')}"
