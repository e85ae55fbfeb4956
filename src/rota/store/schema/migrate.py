"""Numbered migrations. Each is a transaction of its own, under a lock, so that a killed one is continued."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta

from rota.errors import BadConfig, SchemaOutdated
from rota.store.databases.database import Database, Tx
from rota.store.databases.statements import POSTGRES, Migration, migrations
from rota.store.promotion.mark import MARK, has_migrations, mark_of
from rota.store.schema import compatibility

_TABLE = """
create table if not exists rota_migration (
    version integer primary key,
    name text not null,
    applied_at bigint not null)
"""
_LOCK = 7_307_682  # any number of our own: one migrator at a time
_PATIENCE = timedelta(hours=1)  # an index on a big table, or another migrator at work on it

_STOPPED_WITHIN = timedelta(seconds=30)  # the default shutdown_grace, and the end of a process
_LOOK_AGAIN = 0.2


async def current_version(tx: Tx) -> int:
    if tx.dialect is POSTGRES:
        await _require_utf8(tx)
    if not await has_migrations(tx):
        return 0
    ((newest,),) = await tx.fetch_sql("select coalesce(max(version), 0) from rota_migration")
    if newest == MARK and (mark := await mark_of(tx)):
        raise mark.refusal()
    return int(newest)


async def _require_utf8(tx: Tx) -> None:
    ((encoding,),) = await tx.fetch_sql("select current_setting('server_encoding')")
    if encoding != "UTF8":
        raise BadConfig(
            f"the database's encoding is {encoding}, which cannot store every text",
            hint="make one with: create database … encoding 'UTF8' template template0",
        )


def newest_version(database: Database) -> int:
    return migrations(database.dialect)[-1].version


async def check(database: Database) -> tuple[int, int]:
    """Return the database's version and this program's."""
    return await database.read(current_version), newest_version(database)


async def require_own(database: Database) -> None:
    """Raise unless the schema is exactly this program's, for programs that depend on all of its tables."""
    version, own = await check(database)
    if version != own:
        raise SchemaOutdated(version, own)


async def require_served(database: Database) -> None:
    """Raise unless the schema is this program's, or a newer one that serves it."""
    own = newest_version(database)
    version = await database.read(lambda tx: _serving_version(tx, own))
    if version < own:
        raise SchemaOutdated(version, own)


async def oldest_served(database: Database) -> int:
    """Return the oldest schema of a program that may work with this database."""

    async def body(tx: Tx) -> int:
        return await compatibility.oldest_served(tx, await current_version(tx))

    return await database.read(body)


async def _serving_version(tx: Tx, own: int) -> int:
    """Return the database's version. Raise if it is newer and does not serve this program."""
    version = await current_version(tx)
    if version > own and (oldest := await compatibility.oldest_served(tx, version)) > own:
        raise SchemaOutdated(version, own, serves=oldest)
    return version


async def migrate(database: Database, *, force: bool = False) -> list[str]:
    """Apply the missing migrations, and return their names. Any number of processes may call it at once.

    Refused while a worker is alive that could not go on. With `force`, such workers are asked to stop and waited for;
    those that are still alive after 30 s are fenced out. The tables change only then.
    """
    known = migrations(database.dialect)
    newest = known[-1].version
    if await database.transact(lambda tx: _serving_version(tx, newest)) >= newest:
        return []
    if force:
        await _stop_workers(database, known)
    applied = []
    for migration in known:

        async def step(tx: Tx, migration: Migration = migration) -> bool:
            if tx.dialect is POSTGRES:  # on SQLite, the write transaction is the lock
                await tx.script(f"select pg_advisory_xact_lock({_LOCK})")
            version = await _serving_version(tx, newest)  # after the lock: another migrator may have been here
            if version >= migration.version:
                return False
            if version:
                clear_way = compatibility.fence_out if force else compatibility.require_way
                await clear_way(tx, version, _narrowest(known, version))
            await tx.script(_TABLE)
            await tx.script(migration.script)
            await compatibility.record(tx, migration)
            return True

        if await database.transact(step, deadline=_PATIENCE):
            applied.append(migration.name)
    return applied


async def _stop_workers(database: Database, known: Sequence[Migration]) -> None:
    """Ask the workers that the coming migrations leave behind to stop; return when they have, or after a while."""
    until = time.monotonic() + _STOPPED_WITHIN.total_seconds()

    async def ask(tx: Tx) -> list[str]:
        version = await current_version(tx)
        return await compatibility.ask_to_stop(tx, version, _narrowest(known, version)) if version else []

    while await database.transact(ask) and time.monotonic() < until:  # noqa: ASYNC110 - other processes stop
        await asyncio.sleep(_LOOK_AGAIN)


def _narrowest(known: Sequence[Migration], version: int) -> Migration:
    """Return the coming migration that serves the fewest programs: it is refused before the first one is applied."""
    coming = [migration for migration in known if migration.version > version]
    return max(coming, key=lambda migration: migration.serves)
