"""The PostgreSQL database that a promotion fills: marked until it is complete, with a note of progress per batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from rota.errors import Conflict
from rota.store.databases.database import Row, Tx
from rota.store.databases.postgres.postgres import PostgresTx
from rota.store.ledger import audit
from rota.store.promotion.catalogue import Key, Table, catalogue_of, counts_of, identities_of, quoted
from rota.store.promotion.mark import PROMOTED_FROM, PromotionMark, clear_mark, mark_of, set_mark

_SHOWN = 3
_NOTES = "create table rota_promotion (name text primary key, reached text, done smallint not null default 0)"


class TableProgress(msgspec.Struct, frozen=True):
    """Progress of one table: the key of the last row that arrived, and whether it is complete."""

    key: Key | None = None
    done: bool = False


async def filled_by(tx: Tx) -> str | None:
    """Return the id of the promotion that has filled this database, or None."""
    for (id,) in await tx.fetch("get_setting", name=PROMOTED_FROM):
        return str(id)
    return None


async def require_empty(tx: Tx) -> None:
    counts = await counts_of(tx, list((await catalogue_of(tx)).tables))
    filled = [f"{name} {count}" for name, count in counts.items() if count]
    if filled:
        some = ", ".join(filled[:_SHOWN]) + (", …" if len(filled) > _SHOWN else "")
        hint = "these rows would be mixed with the copied ones; use an empty database"
        raise Conflict(f"the database to promote to contains rows already: {some}", hint=hint)


async def begin(tx: Tx, mark: PromotionMark) -> None:
    """Mark the database, so that nobody uses it before it is complete. Idempotent."""
    existing = await mark_of(tx)
    if existing is not None and existing.id == mark.id:
        return
    await require_empty(tx)
    await set_mark(tx, mark)
    await tx.script(_NOTES)


async def reached(tx: Tx) -> dict[str, TableProgress]:
    rows = await tx.fetch_sql("select name, reached, done from rota_promotion")
    return {name: TableProgress(_key(text), bool(done)) for name, text, done in rows}


async def append(tx: Tx, table: Table, before: TableProgress, rows: Sequence[Row]) -> TableProgress:
    """Insert rows and note the progress, in one transaction. Idempotent: repeated, it finds the note."""
    after = TableProgress(table.key_of(rows[-1])) if rows else TableProgress(before.key, done=True)
    await tx.fetch_sql("insert into rota_promotion (name) values (:name) on conflict do nothing", name=table.name)
    # Locked, so that a second promoter waits here and then sees that it is not the only one.
    note = "select reached, done from rota_promotion where name = :name for update"
    ((text, done),) = await tx.fetch_sql(note, name=table.name)
    noted = TableProgress(_key(text), bool(done))
    if noted == after:
        return after
    if noted != before:
        raise Conflict("another process is running the same promotion", hint="let it finish")
    if rows:
        await cast("PostgresTx", tx).copy(table.name, table.columns, rows)
    await tx.fetch_sql(
        "update rota_promotion set reached = :reached, done = :done where name = :name",
        reached=None if after.key is None else msgspec.json.encode(after.key).decode(),
        done=int(after.done),
        name=table.name,
    )
    return after


def _key(text: str | None) -> Key | None:
    return None if text is None else tuple(msgspec.json.decode(text))


async def settle(tx: Tx) -> None:
    """Continue identity columns after the highest number, and analyze the tables for PostgreSQL's planner."""
    for table, column in await identities_of(tx):
        highest = f"select max({quoted([column])}) as highest from {table}"
        numbers = f"setval(pg_get_serial_sequence('{table}', '{column}'), highest)"
        await tx.fetch_sql(f"select {numbers} from ({highest}) as found where highest is not null")
    await tx.script(f"analyze {', '.join((await catalogue_of(tx)).tables)}")


async def complete(tx: Tx, mark: PromotionMark, actor: str | None) -> None:
    """Unmark the database, which is from now on like any other, and store where it came from."""
    if await filled_by(tx) == mark.id:
        return
    await tx.fetch("save_setting", name=PROMOTED_FROM, value=mark.id)
    await tx.script("drop table rota_promotion")
    await clear_mark(tx)
    await audit.note(tx, "database", "database", "promoted", actor, {"promotion": mark.id})


async def undo(tx: Tx) -> None:
    """Empty the database again."""
    tables = ", ".join((await catalogue_of(tx)).tables)
    await tx.script(f"truncate {tables} restart identity; drop table rota_promotion")
    await clear_mark(tx)
