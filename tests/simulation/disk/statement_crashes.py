"""A store whose process dies at any statement of a transaction, those of the hot forms among them; and whole dumps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from rota.store import Store
from rota.store.databases.database import Row, Tx, Work
from tests.support.databases.transaction_crashes import Died
from tests.support.schedules.ledger_oracle import rows
from tests.support.wait import until

T = TypeVar("T")
Moment = Literal["before", "after"]

MOMENTS: tuple[Moment, ...] = ("before", "after")
_TABLES = {
    "sqlite": "select name from sqlite_master where type = 'table' and name like 'rota_%'",
    "postgres": "select tablename from pg_tables where tablename like 'rota_%'",
}
_COLUMNS = {"rota_event": "at, kind, subject, type, actor, fence, details"}
_BUSY = """
select pid from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
"""


class StatementDeaths:
    """Dies at the n-th statement of what `store` does in transactions; counts them meanwhile."""

    def __init__(self, store: Store) -> None:
        self.statements = 0
        self._at: tuple[int, Moment] | None = None
        self._transact = store.database.transact
        store.database.transact = self._dying  # type: ignore[method-assign]

    def at(self, number: int, moment: Moment) -> None:
        self.statements = 0
        self._at = (number, moment)

    def never(self) -> None:
        self.statements = 0
        self._at = None

    async def _dying(self, work: Work[T], **options: Any) -> T:
        return await self._transact(lambda tx: work(_MortalTx(tx, self)), **options)

    def before(self) -> None:
        if self._at == (self.statements, "before"):
            raise Died

    def after(self) -> None:
        self.statements += 1
        if self._at == (self.statements - 1, "after"):
            raise Died


class _MortalTx:
    """Everything else is the transaction's own; its hot forms ask this one."""

    def __init__(self, tx: Tx, deaths: StatementDeaths) -> None:
        self.dialect = tx.dialect
        hot_forms: Callable[[Any], Any] = type(tx.hot)
        self.hot = hot_forms(self)
        self._tx: Any = tx
        self._deaths = deaths

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def fetch(self, statement: str, rows: Sequence[Row] | None = None, /, **values: object) -> Sequence[Row]:
        self._deaths.before()
        answer: Sequence[Row] = await self._tx.fetch(statement, rows, **values)
        self._deaths.after()
        return answer

    async def fetch_sql(self, sql: str, /, **values: object) -> Sequence[Row]:
        self._deaths.before()
        answer: Sequence[Row] = await self._tx.fetch_sql(sql, **values)
        self._deaths.after()
        return answer

    async def script(self, sql: str) -> None:
        self._deaths.before()
        await self._tx.script(sql)
        self._deaths.after()

    def each(self, name: str, rows: Iterable[Row]) -> Sequence[Row]:
        """SQLite's own form of a statement for many rows."""
        self._deaths.before()
        answer: Sequence[Row] = self._tx.each(name, rows)
        self._deaths.after()
        return answer


async def dump(store: Store) -> dict[str, list[str]]:
    """Every row of every table but those that say when the schema was made, and where the database is.

    Events without their numbers: those that a dead transaction had been given are never used again.
    """
    tables = sorted(str(row[0]) for row in await rows(store, _TABLES[store.database.dialect.name]))
    return {
        table: sorted(map(repr, await rows(store, f"select {_COLUMNS.get(table, '*')} from {table}")))
        for table in tables
        if table not in ("rota_migration", "rota_epoch")
    }


async def dead_are_buried(store: Store) -> None:
    """PostgreSQL notices after a moment that somebody has died, and frees what he had locked."""

    async def nobody_is_busy() -> bool:
        return not await rows(store, _BUSY)

    if store.database.dialect.name == "postgres":
        await until(nobody_is_busy)
