"""What surrounds a database, as check-ups judge it: the disk of a file, the state of a server."""

from __future__ import annotations

import asyncio
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rota.core.vitals import Dead, FileVitals, ServerVitals, Transaction
from rota.store.database import Database, Tx

if TYPE_CHECKING:
    from rota.store.sqlite import SqliteDatabase


def sqlite_library() -> str:
    import apsw  # a program that asks a server only has no use for it

    return str(apsw.sqlite_lib_version())


async def planned_with(database: Database) -> str | None:
    """The newest zone data that a schedule was planned with."""

    async def body(tx: Tx) -> str | None:
        ((newest,),) = await tx.fetch("newest_zone_data")
        return None if newest is None else str(newest)

    return await database.read(body)


async def file_vitals(database: SqliteDatabase) -> FileVitals:
    return await asyncio.to_thread(_measured, database.path)


def _measured(name: str) -> FileVitals:
    path = Path(os.path.realpath(name))
    return FileVitals(_size(path), _size(path.with_name(f"{path.name}-wal")), shutil.disk_usage(path.parent).free)


def _size(path: Path) -> int:
    """Nothing if it is not there: a WAL goes with the last who had the file open."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


async def server_vitals(database: Database) -> ServerVitals:
    async def body(tx: Tx) -> ServerVitals:
        ((version, number, size, autovacuum),) = await tx.fetch("server_vitals")
        transactions = await tx.fetch("oldest_transaction")
        return ServerVitals(
            version=str(version).partition(" ")[0],
            major=int(number) // 10_000,
            size=int(size),
            autovacuum=autovacuum == "on",
            unvacuumed=[str(table) for (table,) in await tx.fetch("unvacuumed_tables")],
            oldest=next((_transaction(*row) for row in transactions), None),
            dead=[Dead(str(table), int(live), int(dead)) for table, live, dead in await tx.fetch("dead_rows")],
        )

    return await database.read(body)


def _transaction(pid: int, who: str, state: str, micros: int) -> Transaction:
    return Transaction(int(pid), who, state, timedelta(microseconds=int(micros)))
