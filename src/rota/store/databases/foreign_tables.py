"""Read-only look at tables of other programs, in SQLite and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rota.errors import Invalid, Unavailable

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?")
Rows = list[dict[str, Any]]


def require_names(tables: Sequence[str]) -> None:
    """Refuse what is no name of a table: names cannot be bound as values are."""
    for table in tables:
        if not _NAME.fullmatch(table):
            raise Invalid(f"{table!r:.80} is no name of a table", hint="as in public.apscheduler_jobs")


def read_file(path: str, tables: Sequence[str]) -> dict[str, Rows]:
    """Return all rows of tables of an SQLite file, as of one moment."""
    import apsw

    require_names(tables)
    if not Path(path).exists():
        raise Unavailable(f"there is no database at {path}")
    try:
        # The copy of SQLite that rota uses anyway: a second one in the process would drop locks of the first.
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.execute("begin")
            return {table: _rows(connection, table) for table in tables}
        finally:
            connection.close()
    except apsw.Error as error:
        raise Unavailable(f"{path}: {error}") from None


def _rows(connection: Any, table: str) -> Rows:
    cursor = connection.execute(f"select * from {table} order by 1")
    rows: Rows = []
    for row in cursor:
        names = [column[0] for column in cursor.getdescription()]
        rows.append(dict(zip(names, row, strict=True)))
    return rows


async def read_server(url: str, tables: Sequence[str]) -> dict[str, Rows]:
    """Return all rows of tables of a PostgreSQL database, as of one moment; a table may be named with its schema."""
    import asyncpg

    require_names(tables)
    try:
        connection = await asyncpg.connect(url, timeout=10)
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise Unavailable(f"cannot connect to the database: {error}") from None
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return {
                table: [dict(row) for row in await connection.fetch(f"select * from {table} order by 1")]
                for table in tables
            }
    except asyncpg.PostgresError as error:
        raise Unavailable(f"cannot read the tables: {error}") from None
    finally:
        await connection.close()
