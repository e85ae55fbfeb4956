"""Read whole tables of either database as comparable values, and fill empty ones."""

from __future__ import annotations

import uuid
from typing import Any

from rota.store.databases.database import Database, Tx
from rota.store.promotion.catalogue import catalogue_of, quoted

Content = dict[str, list[tuple[Any, ...]]]


async def content_of(database: Database) -> Content:
    """Return the rows of every table, with columns by name; ids are text, as in SQLite."""

    async def body(tx: Tx) -> Content:
        found: Content = {}
        for table in (await catalogue_of(tx)).tables.values():
            rows = await tx.fetch_sql(f"select {quoted(sorted(table.columns))} from {table.name}")
            found[table.name] = sorted((tuple(map(_plain, row)) for row in rows), key=repr)
        return found

    return await database.read(body)


def _plain(value: object) -> object:
    return str(value) if isinstance(value, uuid.UUID) else value


async def fill_empty(source: Database, target: Database) -> list[str]:
    """A few rows in each table that is empty, by the kinds that its columns have on PostgreSQL; which those were."""
    kinds = await target.read(_kinds)

    async def body(tx: Tx) -> list[str]:
        filled = []
        for table in (await catalogue_of(tx)).tables.values():
            if (await tx.fetch_sql(f"select count(*) from {table.name}"))[0][0]:
                continue
            filled.append(table.name)
            for number in range(1, 4):
                values = [_value(column, kinds[table.name, column], number) for column in table.columns]
                await tx.script(f"insert into {table.name} ({quoted(table.columns)}) values ({', '.join(values)})")
        return filled

    return await source.transact(body)


async def _kinds(tx: Tx) -> dict[tuple[str, str], str]:
    rows = await tx.fetch_sql("select table_name, column_name, data_type from information_schema.columns")
    return {(table, column): kind for table, column, kind in rows}


def _value(column: str, kind: str, number: int) -> str:
    match kind:
        case "uuid":
            return f"'{uuid.UUID(int=number)}'"
        case "bigint":
            return str(number - 2**62 if column.endswith("_at") else number + 2**62)  # a time is long over
        case "smallint":
            return str(2**15 - number)
        case "integer":
            return str(2**31 - number)
        case "double precision":
            return f"{number}.1"
    return f"'text {number}'"
