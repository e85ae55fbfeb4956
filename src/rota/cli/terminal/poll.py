"""Polling of a database that may be unavailable for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from rota.cli.terminal.format import visible
from rota.errors import SchemaOutdated, Unavailable

T = TypeVar("T")

_LONGEST_AWAY = 60.0
_REST = 1.0


class Patience:
    """Retries while the database is unavailable, for up to a minute. Before its first answer, errors are raised."""

    def __init__(self, longest: float = _LONGEST_AWAY) -> None:
        self._longest = longest
        self._has_answered = False

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        away_since: float | None = None
        while True:
            try:
                answer = await question()
            except SchemaOutdated:
                raise
            except Unavailable as error:
                if not self._has_answered:
                    raise
                if away_since is None:
                    away_since = loop.time()
                    click.echo(f"note: {visible(error.message)}; retrying", err=True)
                if loop.time() - away_since > self._longest:
                    raise
                await asyncio.sleep(_REST)
            else:
                self._has_answered = True
                return answer
