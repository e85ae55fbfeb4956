"""The tables of a scene: saved once, put back before each play, and read after it as values that can be compared."""

from __future__ import annotations

import json
from typing import Any

import asyncpg

_TABLES = """
select c.relname, array_agg(a.attname::text order by a.attnum),
    coalesce(array_agg(a.attname::text) filter (where a.attidentity <> ''), '{}')
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> 'rota_migration'
group by c.relname order by c.relname
"""
_SEQUENCES = "select schemaname || '.' || sequencename, coalesce(last_value, 0) from pg_sequences"
_PLAYS_BETWEEN_VACUUMS = 100
_NUMBERED = {"rota_schedule": ("cursor_no",), "rota_cursor": ("no",)}
"""Columns with numbers of rows: who comes first gets the lower one, which nobody may rely on."""

Content = dict[str, tuple[str, ...]]


class Tables:
    def __init__(
        self, connection: asyncpg.Connection[Any], columns: dict[str, list[str]], numbers: dict[str, set[str]]
    ):
        self._connection = connection
        self._columns = columns
        self._numbers = numbers
        self._saved: Content = {}
        self._now: Content = {}
        self._restore: dict[str, str] = {}
        self._sequences = ""
        self._plays = 0

    @classmethod
    async def of(cls, connection: asyncpg.Connection[Any]) -> Tables:
        rows = await connection.fetch(_TABLES)
        numbers = {name: {*identity, *_NUMBERED.get(name, ())} for name, _, identity in rows}
        return cls(connection, {name: list(columns) for name, columns, _ in rows}, numbers)

    async def empty(self) -> None:
        await self._connection.execute(f"truncate {', '.join(self._columns)}")

    async def save(self) -> None:
        """Remember all rows as they are now."""
        copies = [f"create table saved.{name} as table public.{name};" for name in self._columns]
        await self._connection.execute(f"drop schema if exists saved cascade; create schema saved; {' '.join(copies)}")
        self._restore = {
            name: f"delete from {name}; insert into {name} ({', '.join(columns)}) overriding system value "
            f"select {', '.join(columns)} from saved.{name};"
            for name, columns in self._columns.items()
        }
        sequences = await self._connection.fetch(_SEQUENCES)
        self._sequences = " ".join(f"select setval('{name}', {max(last, 1)});" for name, last in sequences)
        self._saved = self._now = await self._raw()

    async def restore(self) -> None:
        """Put back the tables that were changed. Triggers are off: what they wrote is put back, too."""
        self._plays += 1
        self._now = await self._raw()
        changed = [name for name in self._columns if self._now.get(name) != self._saved.get(name)]
        scripts = " ".join(self._restore[name] for name in changed)
        await self._connection.execute(
            f"begin; set local session_replication_role = replica; {scripts} {self._sequences} commit"
        )
        if self._plays % _PLAYS_BETWEEN_VACUUMS == 0:
            await self._connection.execute("vacuum")

    async def content(self) -> Content:
        """Return all rows, without numbers of rows, in an order of their own."""
        raw = await self._raw()
        return {name: tuple(sorted(self._plain(name, row) for row in rows)) for name, rows in raw.items() if rows}

    async def _raw(self) -> Content:
        asked = " union all ".join(f"select '{name}', to_jsonb(t)::text from {name} t" for name in self._columns)
        found: dict[str, list[str]] = {}
        for name, row in await self._connection.fetch(asked):
            found.setdefault(name, []).append(row)
        return {name: tuple(rows) for name, rows in found.items()}

    def _plain(self, name: str, row: str) -> str:
        numbers = self._numbers[name]
        if not numbers:
            return row
        return json.dumps({column: value for column, value in json.loads(row).items() if column not in numbers})


def difference(one: Content, other: Content) -> list[str]:
    """Tell the rows of which there are more in one than in the other."""
    told = []
    for name in sorted(one.keys() | other.keys()):
        ours, theirs = set(one.get(name, ())), set(other.get(name, ()))
        told += [f"- {name} {row}" for row in sorted(theirs - ours)] + [
            f"+ {name} {row}" for row in sorted(ours - theirs)
        ]
    return told
