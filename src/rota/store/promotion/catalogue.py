"""The tables of a database, read from its own catalogue, so that none can be forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.store.databases.database import Row, Tx
from rota.store.databases.statements import POSTGRES

_SQLITE_TABLES = (
    "select name, type from sqlite_master where type in ('table', 'view') "
    "and name like 'rota!_%' escape '!' and name not in ('rota_migration', 'rota_epoch') order by name"
)
_SQLITE_COLUMNS = "select name, lower(type), pk from pragma_table_info(:name)"
# Places in the key count from one; zero: no part of it.
_POSTGRES_COLUMNS = """
select c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod),
    coalesce(array_position(i.indkey::int[], a.attnum::int) + 1, 0)
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_index i on i.indrelid = c.oid and i.indisprimary
where c.relkind = 'r' and c.relname like 'rota!_%' escape '!'
    and c.relname not in ('rota_migration', 'rota_promotion', 'rota_epoch')
    and pg_table_is_visible(c.oid)
order by c.relname, a.attnum
"""
_IDENTITIES = """
select c.relname::text, a.attname::text
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
where c.relname like 'rota!_%' escape '!' and pg_table_is_visible(c.oid)
"""


Key = tuple[Any, ...]
"""The values of a row's primary key."""


class Table(msgspec.Struct, frozen=True):
    """A table: `columns` in order, `key` those of the primary key, `texts` those that may hold any text."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    texts: tuple[str, ...]

    def key_of(self, row: Row) -> Key:
        return tuple(row[self.columns.index(column)] for column in self.key)


class Catalogue(msgspec.Struct, frozen=True):
    """All tables. `derived`: views, which are not copied."""

    tables: dict[str, Table]
    derived: tuple[str, ...] = ()


async def catalogue_of(tx: Tx) -> Catalogue:
    """Return all tables of rota but those that describe the database itself."""
    return await _of_postgres(tx) if tx.dialect is POSTGRES else await _of_sqlite(tx)


async def _of_sqlite(tx: Tx) -> Catalogue:
    rows = await tx.fetch_sql(_SQLITE_TABLES)
    names = [name for name, kind in rows if kind == "table"]
    tables = {name: _table(name, await tx.fetch_sql(_SQLITE_COLUMNS, name=name)) for name in names}
    return Catalogue(tables, tuple(name for name, kind in rows if kind == "view"))


async def _of_postgres(tx: Tx) -> Catalogue:
    columns: dict[str, list[Row]] = {}
    for name, *column in await tx.fetch_sql(_POSTGRES_COLUMNS):
        columns.setdefault(name, []).append(column)
    return Catalogue({name: _table(name, rows) for name, rows in columns.items()})


def _table(name: str, columns: Sequence[Row]) -> Table:
    key = sorted((place, column) for column, _, place in columns if place)
    return Table(
        name,
        tuple(column for column, _, _ in columns),
        tuple(column for _, column in key),
        tuple(column for column, kind, _ in columns if kind == "text"),
    )


async def counts_of(tx: Tx, names: Sequence[str]) -> dict[str, int]:
    """Count the rows of these tables, in the order given."""
    if not names:
        return {}
    counts = [f"select '{name}', count(*) from {name}" for name in names]
    # In batches: SQLite allows at most 500 terms in a union, and its parser is slow well below that.
    batches = [counts[first : first + 50] for first in range(0, len(counts), 50)]
    found = {name: count for batch in batches for name, count in await tx.fetch_sql(" union all ".join(batch))}
    return {name: int(found[name]) for name in names}  # a parallel plan answers in any order


async def identities_of(tx: Tx) -> list[tuple[str, str]]:
    """Return the (table, column) pairs that PostgreSQL numbers by itself."""
    return [(table, column) for table, column in await tx.fetch_sql(_IDENTITIES)]


def quoted(columns: Sequence[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)
