"""The way from a command to a client, and back out whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from rota.client import Client
from rota.config import load_config
from rota.errors import Unavailable
from rota.registry.jobs import Registry
from rota.store import dialect_of, open_database, open_store
from rota.store.statements import SQLITE

T = TypeVar("T")


def ask(database: str | None, question: Callable[[Client], Awaitable[T]]) -> T:
    """Ask a client that knows no jobs of its own, only those the database has heard of."""

    async def connected() -> T:
        config = load_config({"database_url": database})
        require_existing(config.database_url)
        client = Client(await open_store(config.database_url, deadline=config.deadline), Registry(), config)
        try:
            return await question(client)
        finally:
            await client.close()

    return asyncio.run(connected())


def actor() -> str:
    """Who gives the command, as it is kept with what it changes."""
    with contextlib.suppress(Exception):  # a container may run as a user without a name
        return f"cli:{getpass.getuser()}"
    return "cli"


def require_existing(url: str) -> None:
    """SQLite would make an empty file of a mistyped path, and find nothing in it."""
    if dialect_of(url) is not SQLITE:
        return
    from rota.store.sqlite import SqliteDatabase

    database = open_database(url)
    assert isinstance(database, SqliteDatabase)
    if not Path(database.path).exists():
        raise Unavailable(
            f"there is no rota database at {database.path}",
            hint="start `rota dev` or a worker, or name another with --database",
        )


def without_password(url: str) -> str:
    password = urlsplit(url).password
    return url.replace(f":{password}@", ":…@") if password else url
