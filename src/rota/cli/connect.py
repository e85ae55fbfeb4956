"""Open a client for a command, call it, and close it."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import click

from rota.client.client import Client
from rota.config import Config, load_config
from rota.errors import Invalid, Unavailable
from rota.registry.jobs import Registry
from rota.store import anchored, dialect_of, open_database, open_store
from rota.store.databases.statements import SQLITE

T = TypeVar("T")
_IN_QUERY = re.compile(r"([?&]password=)[^&]*")


def ask(database: str | None, question: Callable[[Client], Awaitable[T]], *, within: float | None = None) -> T:
    """Call `question` with a client of the database, or of a server if one is set, and return its answer.

    The client declares no jobs: it knows those in the database. Raise `TimeoutError` after `within` seconds.
    """
    server = server_of(database)

    async def connected() -> T:
        config = load_config({"database_url": database})
        client = await _client(config) if server is None else _remote_client(server, config)
        try:
            return await question(client)
        finally:
            await client.close()

    return asyncio.run(asyncio.wait_for(connected(), within))


async def _client(config: Config) -> Client:
    require_existing(config.database_url)
    return Client(await open_store(config.database_url, deadline=config.deadline), Registry(), config)


def _remote_client(server: str, config: Config) -> Client:
    """Return a client of the server, which has the same methods."""
    from rota.remote import RemoteClient

    token = root_option("token") or config.token
    client = RemoteClient(server, token or None, config.deadline)
    return cast("Client", client)


def server_of(database: str | None) -> str | None:
    """Return the URL of the server to use, or None for the database itself. Flags override settings."""
    server: str | None = root_option("server")
    if server is not None and database is not None:
        raise Invalid("give --server or --database, not both")
    if server is None and database is None:
        server = load_config().server or None
    if server is None and root_option("token") is not None:
        raise Invalid("--token needs --server", hint="a database has its own users and passwords")
    return server


def require_database(database: str | None) -> str:
    """Return the URL of the database, for commands that a server cannot carry out.

    With --server it is an error; ROTA_SERVER is ignored if a database is set, too.
    """
    if root_option("server") is None:
        config = load_config({"database_url": database})
        if not config.server or config.database_url != Config().database_url:
            return config.database_url
    name = click.get_current_context().command_path
    hint = "leave out --server and ROTA_SERVER, and give --database or ROTA_DATABASE_URL"
    raise Invalid(f"`{name}` needs the database itself, not a server", hint=hint)


def root_option(option: str) -> Any:
    """Return the value of an option of `rota` itself, before the command, or None."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.find_root().params.get(option)


def actor() -> str:
    """Return who gives the command, as the audit records it."""
    with contextlib.suppress(Exception):  # a container may run as a user without a name
        return f"cli:{getpass.getuser()}"
    return "cli"


def require_existing(url: str) -> None:
    """Raise `Unavailable` if the SQLite file is missing: SQLite would create an empty one for a mistyped path."""
    if dialect_of(url) is not SQLITE:
        return
    from rota.store.databases.sqlite.sqlite import SqliteDatabase

    database = open_database(url)
    assert isinstance(database, SqliteDatabase)
    if not Path(database.path).exists():
        raise Unavailable(
            f"there is no rota database at {Path(database.path).absolute()}",
            hint="start `rota dev` or a worker, or give another with --database or ROTA_DATABASE_URL",
        )


def database_shown(url: str) -> str:
    """Return the address of a database without its password; that of an SQLite file is absolute.

    A relative path is another file in another folder, which nobody notices: each process has its own database.
    """
    return without_password(anchored(url))


def without_password(url: str) -> str:
    password = urlsplit(url).password
    shown = url.replace(f":{password}@", ":…@") if password else url
    return _IN_QUERY.sub(r"\1…", shown)
