"""Databases for a while on somebody's PostgreSQL server: made, copied and dropped, for tests."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from rota.errors import BadConfig, Unavailable

_PREFIX = "rota_test_"


class Server:
    """`url` names any database of it, and a role that may make others."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def create(self, template: str | None = None) -> str:
        """The url of a new database; `template` is the url of one to copy, which nobody may be using meanwhile."""
        name = f"{_PREFIX}{secrets.token_hex(8)}"
        # Of a template: to copy its files is much faster than all migrations for each test.
        await self._execute(f'create database "{name}" template "{_name(template) if template else "template0"}"')
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))

    async def drop(self, url: str) -> None:
        """Drop a database. Whoever is connected to it is cut off. Only those made here are ever dropped."""
        assert _name(url).startswith(_PREFIX), "not one of ours"
        await self._execute(f'drop database if exists "{_name(url)}" with (force)')

    async def _execute(self, sql: str) -> None:
        try:
            connection = await asyncpg.connect(self._url)
        except (OSError, asyncpg.PostgresError) as error:
            raise Unavailable(f"no database for tests: {error}") from error
        try:
            await connection.execute(sql)
        except asyncpg.InsufficientPrivilegeError as error:
            raise BadConfig(f"no database for tests: {error}", hint="its role needs CREATEDB") from error
        finally:
            await connection.close()


def _name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
