"""Numbered migrations: each in a transaction of its own, under a lock, so that a killed one continues."""

from __future__ import annotations

from datetime import timedelta

from rota.errors import BadConfig, SchemaOutdated
from rota.store.database import Database, Tx
from rota.store.marks import MARK, has_migrations, mark_of
from rota.store.statements import POSTGRES, migrations

_TABLE = """
create table if not exists rota_migration (
    version integer primary key,
    name text not null,
    applied_at bigint not null)
"""
_LOCK = 7_307_682  # any number of our own: one migrator at a time
_PATIENCE = timedelta(hours=1)  # an index on a big table, or another migrator at work on it


async def current_version(tx: Tx) -> int:
    if tx.dialect is POSTGRES:
        await _require_utf8(tx)
    if not await has_migrations(tx):
        return 0
    found = int((await tx.fetch_sql("select coalesce(max(version), 0) from rota_migration"))[0][0])
    if found == MARK and (mark := await mark_of(tx)):
        raise mark.refusal()
    return found


async def _require_utf8(tx: Tx) -> None:
    ((encoding,),) = await tx.fetch_sql("select current_setting('server_encoding')")
    if encoding != "UTF8":
        raise BadConfig(
            f"the database's encoding is {encoding}, which cannot hold every text",
            hint="make one with: create database … encoding 'UTF8' template template0",
        )


def newest_version(database: Database) -> int:
    return migrations(database.dialect)[-1][0]


async def check(database: Database) -> tuple[int, int]:
    """(the database's version, this program's)."""
    return await database.read(current_version), newest_version(database)


async def require_current(database: Database) -> None:
    found, wanted = await check(database)
    if found != wanted:
        raise SchemaOutdated(found, wanted)


async def migrate(database: Database) -> list[str]:
    """Apply what is missing; returns the names applied. Any number of processes may try at once."""
    newest = newest_version(database)
    if await database.transact(current_version) == newest:
        return []
    applied = []
    for version, name, script in migrations(database.dialect):

        async def step(tx: Tx, version: int = version, name: str = name, script: str = script) -> bool:
            if tx.dialect is POSTGRES:
                await tx.script(f"select pg_advisory_xact_lock({_LOCK})")
            found = await current_version(tx)
            if found > newest:
                raise SchemaOutdated(found, newest)
            if found >= version:
                return False
            await tx.script(_TABLE)
            await tx.script(script)
            await tx.fetch_sql(
                "insert into rota_migration (version, name, applied_at) values (:version, :name, :now)",
                version=version,
                name=name,
            )
            return True

        if await database.transact(step, deadline=_PATIENCE):
            applied.append(name)
    return applied
