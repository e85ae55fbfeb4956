"""Unpack `tests/golden/`: databases of every schema version, and the program of an earlier one."""

from __future__ import annotations

import lzma
from pathlib import Path

import asyncpg

from rota.store import Database, open_database
from rota.store.databases.database import Tx
from rota.store.databases.statements import POSTGRES
from tests.support.archives import unpack_tar

HERE = Path(__file__).parents[2] / "golden"

_SQLITE = "select type || ' ' || name, coalesce(sql, '') from sqlite_master where tbl_name like 'rota%'"
_POSTGRES = """
select 'column ' || table_name || '.' || column_name,
    concat_ws(' ', ordinal_position, data_type, is_nullable, column_default, is_identity)
from information_schema.columns where table_schema = 'public'
union all select 'index ' || indexname, indexdef from pg_indexes where schemaname = 'public'
union all select 'view ' || viewname, definition from pg_views where schemaname = 'public'
union all select 'constraint ' || conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
from pg_constraint where connamespace = 'public'::regnamespace
union all select 'trigger ' || tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
union all select 'function ' || proname, prosrc from pg_proc where pronamespace = 'public'::regnamespace
union all select 'storage ' || relname, reloptions::text from pg_class where relnamespace = 'public'::regnamespace
"""


def kept(schema: int, database: str) -> Path:
    return HERE / f"schema-{schema}.{database}.xz"


async def restore(schema: int, url: str) -> None:
    """Into a database that is empty."""
    if url.startswith("sqlite"):
        _unpack(kept(schema, "sqlite"), Path(url.removeprefix("sqlite:///")))
        return
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(lzma.decompress(kept(schema, "postgres.sql").read_bytes()).decode())
    finally:
        await connection.close()


async def restore_without_workers(schema: int, url: str) -> None:
    """Restore for programs with a real clock, which would take the stored workers, of a future time, for alive."""
    await restore(schema, url)
    database = open_database(url)
    await database.transact(lambda tx: tx.script("delete from rota_worker"))
    await database.close()


def _unpack(packed: Path, target: Path) -> None:
    target.write_bytes(lzma.decompress(packed.read_bytes()))


def older_program(folder: Path) -> Path:
    """The program of schema 5, to be put on the path."""
    unpack_tar(HERE / "rota-schema-5.tar.xz", folder)
    return folder


async def shape_of(database: Database) -> dict[str, str]:
    """Return everything that makes up the schema, by kind and name."""

    async def body(tx: Tx) -> dict[str, str]:
        rows = await tx.fetch_sql(_POSTGRES if tx.dialect is POSTGRES else _SQLITE)
        return {str(name): str(text) for name, text in rows}

    return await database.read(body)
