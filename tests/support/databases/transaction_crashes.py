"""Simulate processes that die inside a transaction, or whose commit is never answered."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeVar

from rota.errors import Unavailable
from rota.store import Store
from rota.store.databases.database import Row, Tx, Work

T = TypeVar("T")
Moment = Literal["before", "after", "unanswered"]


class Died(Exception):
    """The simulated death: an error that the program under test cannot know."""


class Deaths:
    """Lets `store` die at its n-th statement, or lose the answer to its n-th commit; counts both meanwhile."""

    def __init__(self, store: Store) -> None:
        self.statements = 0
        self.commits = 0
        self.died = False
        self._moment: Moment | None = None
        self._at = -1
        self._transact = store.database.transact
        store.database.transact = self._dying  # type: ignore[method-assign]

    def at(self, number: int, moment: Moment) -> None:
        self.statements = self.commits = 0
        self.died = False
        self._at, self._moment = number, moment

    def never(self) -> None:
        self.at(-1, "before")

    async def _dying(self, work: Work[T], **options: Any) -> T:
        answer = await self._transact(lambda tx: work(_Tx(tx, self)), **options)
        self.commits += 1
        if self._moment == "unanswered" and self.commits - 1 == self._at:
            self.died = True
            raise Unavailable("the connection broke before the answer")
        return answer

    async def around(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        mine = self.statements == self._at and self._moment != "unanswered"
        self.statements += 1
        if mine and self._moment == "before":
            self.died = True
            raise Died
        answer = await act()
        if mine:
            self.died = True
            raise Died
        return answer


class _Tx:
    def __init__(self, tx: Tx, deaths: Deaths) -> None:
        self.dialect = tx.dialect
        self.hot = tx.hot
        self.woken = tx.woken
        self.wake = tx.wake
        self._tx = tx
        self._deaths = deaths

    async def fetch(self, statement: str, rows: Sequence[Row] | None = None, /, **values: object) -> Sequence[Row]:
        return await self._deaths.around(lambda: self._tx.fetch(statement, rows, **values))

    async def fetch_sql(self, sql: str, /, **values: object) -> Sequence[Row]:
        return await self._deaths.around(lambda: self._tx.fetch_sql(sql, **values))

    async def script(self, sql: str) -> None:
        await self._deaths.around(lambda: self._tx.script(sql))
