"""Stand-in for a database that refuses every access."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from rota.errors import Unavailable
from rota.store import Database
from rota.store.databases.database import Hint, Session, Work
from rota.store.databases.epoch import Standing
from rota.store.databases.statements import SQLITE
from rota.values.clock import Clock, HostClock

T = TypeVar("T")


class NoDatabase:
    def __init__(self) -> None:
        self.dialect = SQLITE
        self.clock: Clock = HostClock()
        self.polls = False
        self.standing = Standing()
        self.hears = False

    async def transact(self, work: Work[T], **_how: object) -> T:
        raise Unavailable("there is no database inside inline()")

    alone = transact
    glance = transact
    read = transact
    heed = transact
    foresee = transact

    def session(self) -> AbstractAsyncContextManager[Session]:
        raise Unavailable("there is no database inside inline()")

    def version(self) -> object | None:
        return None

    def notify(self, queues: Iterable[str | None]) -> None:
        """Do nothing: nobody listens."""

    def listen(self, hint: Hint) -> Callable[[], None]:
        return lambda: None

    async def renew(self) -> None:
        """Do nothing: nothing here depends on where a database is."""

    def twin(self) -> Database:
        return self

    async def close(self) -> None:
        """Do nothing: nothing is open."""
