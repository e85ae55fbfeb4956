"""The only SQL: one store of operations over SQLite or PostgreSQL."""

from __future__ import annotations

import os
from datetime import timedelta
from urllib.parse import quote, unquote, urlsplit

from rota.errors import BadConfig
from rota.store.databases.database import Database
from rota.store.databases.statements import POSTGRES, SQLITE, Dialect
from rota.store.store import Extended, Promoted, Store
from rota.values.clock import Clock, new_id

__all__ = [
    "Database",
    "Extended",
    "Promoted",
    "Store",
    "anchored",
    "dialect_of",
    "new_id",
    "open_database",
    "open_store",
]

_DEADLINE = timedelta(seconds=15)
_HINT = 'write "sqlite:///path/to/file.db" or "postgresql://user:password@host/database"'


def dialect_of(url: str) -> Dialect:
    scheme = urlsplit(url).scheme
    if scheme not in ("sqlite", "postgresql", "postgres"):
        # The URL itself stays out of the message: it may hold a password.
        raise BadConfig(f"{scheme}: is no kind of database" if scheme else "a database URL has no scheme", hint=_HINT)
    return SQLITE if scheme == "sqlite" else POSTGRES


def anchored(url: str) -> str:
    """A URL that means the same file after the working directory has changed."""
    if dialect_of(url) is POSTGRES:
        return url
    return f"sqlite:///{quote(os.path.abspath(_file_of(url)))}"


def _file_of(url: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or not path or path == ":memory:":
        raise BadConfig(f"{url!r} names no file", hint=_HINT)
    return path


def open_database(url: str, manual_clock: Clock | None = None, deadline: timedelta = _DEADLINE) -> Database:
    """Return the database that `url` names, without connecting. A manual clock, for tests, replaces its own.

    `deadline` bounds every call to PostgreSQL.
    """
    if dialect_of(url) is SQLITE:
        from rota.store.databases.sqlite.sqlite import SqliteDatabase

        return SqliteDatabase(_file_of(url), manual_clock)
    from rota.store.databases.postgres.postgres import PostgresDatabase

    return PostgresDatabase(url, manual_clock, deadline=deadline)


async def open_store(url: str, manual_clock: Clock | None = None, deadline: timedelta = _DEADLINE) -> Store:
    """An SQLite file is brought up to date silently; PostgreSQL only by `rota migrate`."""
    store = Store(open_database(url, manual_clock, deadline))
    try:
        if store.database.dialect.name == "sqlite":
            await store.migrate()
        else:
            await store.require_schema()
    except BaseException:
        await store.close()
        raise
    return store
