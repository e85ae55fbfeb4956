"""Pool of PostgreSQL databases that tests borrow: emptying one is much cheaper than creating one."""

import asyncpg

from tests.support.databases.postgres import PostgresServer, connected

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
    """Copies of a template, which has all tables and no rows."""

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server, self._template = server, template
        self._free: list[str] = []
        self._shape = connected(template, lambda connection: connection.fetchrow(SHAPE))

    def lend(self) -> str:
        return self._free.pop() if self._free else self._server.create_database(self._template)

    def take_back(self, url: str) -> None:
        if connected(url, self._emptied):
            self._free.append(url)
        else:
            self._server.drop_database(url)

    def close(self) -> None:
        for url in self._free:
            self._server.drop_database(url)

    async def _emptied(self, connection: asyncpg.Connection) -> bool:
        """Delete all rows; return whether the database is as new. It is not if tables were created or dropped."""
        await connection.execute(ALONE)
        if await connection.fetchrow(SHAPE) != self._shape:
            return False
        tables = [row[0] for row in await connection.fetch(TABLES)]
        look = " union all ".join(
            f"select '{name}', pg_relation_size('{name}') where exists (select 1 from {name})" for name in tables
        )
        for name, size in await connection.fetch(look):
            await connection.execute(f"delete from {name}" if size <= SMALL else f"truncate {name}")
        return True
