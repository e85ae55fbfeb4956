"""The mark of a promotion on both of its databases: a migration from the future, which no rota takes for its own.

Every program checks the migrations of a database that it opens: an older rota refuses a migration that it does not
know, and this one explains it.
"""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from rota.errors import DatabaseMoved, PromotionUnfinished, RotaError
from rota.store.databases.database import Tx
from rota.store.databases.statements import POSTGRES

MARK = 1_000_000
PROMOTED_FROM = "promoted_from"
"""The setting that holds the id of the promotion which filled this database."""


class PromotionMark(msgspec.Struct, frozen=True):
    """State of a promotion.

    `leaving`: the file is frozen while it is copied; `left`: it is history; `arriving`: half-filled.
    """

    kind: Literal["leaving", "left", "arriving"]
    id: str
    place: str

    @property
    def is_over(self) -> bool:
        """Return whether everything is in the other database."""
        match self.kind:
            case "left":
                return True
            case "leaving" | "arriving":
                return False
            case _:
                assert_never(self.kind)

    def refusal(self) -> RotaError:
        return DatabaseMoved(self.place) if self.is_over else PromotionUnfinished(self.place)


async def has_migrations(tx: Tx) -> bool:
    catalogue = (
        "select count(*) from pg_tables where tablename = 'rota_migration' and schemaname = any(current_schemas(false))"
        if tx.dialect is POSTGRES
        else "select count(*) from sqlite_master where type = 'table' and name = 'rota_migration'"
    )
    ((count,),) = await tx.fetch_sql(catalogue)
    return bool(count)


async def mark_of(tx: Tx) -> PromotionMark | None:
    if not await has_migrations(tx):
        return None
    for (text,) in await tx.fetch_sql("select name from rota_migration where version = :version", version=MARK):
        return msgspec.json.decode(text, type=PromotionMark)
    return None


async def set_mark(tx: Tx, mark: PromotionMark) -> None:
    await clear_mark(tx)
    await tx.fetch_sql(
        "insert into rota_migration (version, name, applied_at) values (:version, :name, :now)",
        version=MARK,
        name=msgspec.json.encode(mark).decode(),
    )


async def clear_mark(tx: Tx) -> None:
    await tx.fetch_sql("delete from rota_migration where version = :version", version=MARK)
