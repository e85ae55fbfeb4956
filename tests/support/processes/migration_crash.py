"""Migrate a database and kill this process on the way: `migration_crash.py URL inside|after VERSION`."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from typing import Any

from rota.store import Store, open_database
from rota.store.databases.database import Database, Tx
from rota.store.databases.statements import Migration, migrations
from rota.store.schema import compatibility as serving_module


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_inside(database: Database, version: int) -> None:
    """Die after the first statement of the migration's script."""
    script = next(one.script for one in migrations(database.dialect) if one.version == version)
    transact = database.transact

    async def dying(work: Any, **options: Any) -> Any:
        async def body(tx: Tx) -> Any:
            original = tx.script

            async def execute(sql: str) -> None:
                await original(first_statement(sql) if sql == script else sql)
                if sql == script:
                    die()

            tx.script = execute  # type: ignore[method-assign]
            return await work(tx)

        return await transact(body, **options)

    database.transact = dying  # type: ignore[method-assign]


def die_after(last: int) -> None:
    """Die when the migration is recorded and committed: the next step begins by reading active workers."""
    original = serving_module.require_way

    async def dying(tx: Tx, version: int, migration: Migration) -> None:
        if version == last:
            die()
        await original(tx, version, migration)

    serving_module.require_way = dying


def first_statement(script: str) -> str:
    taken = ""
    for line in script.splitlines(keepends=True):
        taken += line
        if sqlite3.complete_statement(taken):
            break
    assert taken != script
    return taken


async def migrate(url: str, moment: str, version: int) -> None:
    store = Store(open_database(url))
    if moment == "inside":
        die_inside(store.database, version)
    else:
        die_after(version)
    await store.migrate()


if __name__ == "__main__":
    asyncio.run(migrate(sys.argv[1], sys.argv[2], int(sys.argv[3])))
