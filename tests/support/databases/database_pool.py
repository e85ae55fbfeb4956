"""Pool of PostgreSQL databases that tests borrow: emptying one is much cheaper than creating one."""

from contextlib import suppress

import asyncpg

from rota.client.blocking import LoopThread
from tests.support.databases.postgres import PostgresServer, connected
from tests.support.wait import PATIENCE

ALONE = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
"""
SHAPE = """
select count(*), (select count(*) from pg_proc), (select count(*) from pg_attribute),
    (select count(*) from pg_db_role_setting where setdatabase = (
        select oid from pg_database where datname = current_database())),
    (select string_agg(version::text, ' ' order by version) from rota_migration)
from pg_class
"""
TABLES = "select tablename from pg_tables where schemaname = 'public' and tablename <> 'rota_migration'"
SMALL = 64 * 1024  # bytes: what is larger is truncated, so that nobody looks through what others left


class Lending:
    """Copies of a template, which has all tables and no rows.

    To look and to empty, each has one connection that stays: of the time that a new one needs, nearly all goes into
    reading the catalog and planning these statements.
    """

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server, self._template = server, template
        self._free: list[str] = []
        # Whoever migrated the template left its place there: a copy that is elsewhere would begin as after a failover.
        self._shape = connected(template, _first_shape)
        self._thread = LoopThread()
        self._connections: dict[str, asyncpg.Connection] = {}

    def lend(self) -> str:
        return self._free.pop() if self._free else self._server.create_database(self._template)

    def take_back(self, url: str) -> None:
        if self._thread.call(self._is_emptied(url)):
            self._free.append(url)
        else:
            self._server.drop_database(url)

    def close(self) -> None:
        for connection in self._connections.values():
            self._thread.call(connection.close())
        self._thread.stop()
        for url in self._free:
            self._server.drop_database(url)

    async def _is_emptied(self, url: str) -> bool:
        """Delete all rows; return whether the database is as new. It is not if tables were created or dropped."""
        kept = self._connections.pop(url, None)
        if kept is not None and not kept.is_closed():
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):  # a test cut all connections
                return await self._emptied_by(kept, url)
        return await self._emptied_by(await asyncpg.connect(url, timeout=PATIENCE), url)

    async def _emptied_by(self, connection: asyncpg.Connection, url: str) -> bool:
        if await _emptied(connection, self._shape):
            self._connections[url] = connection
            return True
        await connection.close()
        return False


async def _first_shape(connection: asyncpg.Connection) -> asyncpg.Record | None:
    shape = await connection.fetchrow(SHAPE)
    await _emptied(connection, shape)
    return shape


async def _emptied(connection: asyncpg.Connection, shape: asyncpg.Record | None) -> bool:
    await connection.execute(ALONE)
    if await connection.fetchrow(SHAPE) != shape:
        return False
    tables = [row[0] for row in await connection.fetch(TABLES)]
    look = " union all ".join(
        f"select '{name}', pg_relation_size('{name}') where exists (select 1 from {name})" for name in tables
    )
    for name, size in await connection.fetch(look):
        await connection.execute(f"delete from {name}" if size <= SMALL else f"truncate {name}")
    return True
