"""The only SQL: one store of operations over SQLite or PostgreSQL."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, unquote, urlsplit

from rota.errors import BadConfig
from rota.late import late_name
from rota.store.databases.database import Database
from rota.store.databases.epoch import Standing
from rota.store.databases.statements import POSTGRES, SQLITE, Dialect
from rota.values.clock import Clock, new_id

if TYPE_CHECKING:
    from rota.store.store import Promoted, Store
    from rota.store.workers.heartbeat import Extended

__all__ = [
    "Database",
    "Extended",
    "Promoted",
    "Store",
    "anchored",
    "checked_pool",
    "dialect_of",
    "new_id",
    "open_database",
    "open_store",
]

Pool = TypeVar("Pool")
_DEADLINE = timedelta(seconds=15)
_HOMES = {"rota.store.store": ("Promoted", "Store"), "rota.store.workers.heartbeat": ("Extended",)}
_HINT = 'write "sqlite:///path/to/file.db" or "postgresql://user:password@host/database"'


def __getattr__(name: str) -> object:
    return late_name(globals(), _HOMES, name)


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
    return f"sqlite:///{quote(os.path.abspath(file_of(url)))}"


def checked_pool(pool: Pool, url: str) -> Pool:
    if pool is not None and dialect_of(url) is not POSTGRES:
        raise BadConfig(
            "a pool needs the URL of its database, too",
            hint='Rota("postgresql://…", pool=pool): heartbeats, threads and child processes connect by it',
        )
    return pool


def file_of(url: str) -> str:
    """Return the path of the file that the URL of an SQLite database names."""
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or not path or path == ":memory:":
        raise BadConfig(f"{url!r} names no file", hint=_HINT)
    return path


def open_database(
    url: str,
    manual_clock: Clock | None = None,
    deadline: timedelta = _DEADLINE,
    *,
    accepts_copies: bool = False,
    pool: object = None,
) -> Database:
    """Return the database that `url` names, without connecting. A manual clock, for tests, replaces its own.

    `deadline` bounds every call to PostgreSQL. With `accepts_copies`, a copy is not held (`databases/epoch`). `pool` is
    the application's own, if transactions are to take their connections from it.
    """
    if dialect_of(url) is SQLITE:
        from rota.store.databases.sqlite.sqlite import SqliteDatabase

        return SqliteDatabase(file_of(url), manual_clock)
    from rota.store.databases.postgres.postgres import PostgresDatabase
    from rota.store.databases.postgres.shared_pool import pool_of_this_loop

    standing = Standing(accepts_copies=accepts_copies)
    return PostgresDatabase(url, manual_clock, deadline=deadline, standing=standing, shared=pool_of_this_loop(pool))


async def open_store(
    url: str,
    manual_clock: Clock | None = None,
    deadline: timedelta = _DEADLINE,
    *,
    accepts_copies: bool = False,
    pool: object = None,
) -> Store:
    """An SQLite file is brought up to date silently; PostgreSQL only by `rota migrate`."""
    from rota.store.store import Store

    store = Store(open_database(url, manual_clock, deadline, accepts_copies=accepts_copies, pool=pool))
    try:
        if store.database.dialect.name == "sqlite":
            await store.migrate()
        else:
            await store.require_schema()
    except BaseException:
        await store.close()
        raise
    return store
