"""The SQLite file that a promotion copies: frozen for everybody, read in batches, and in the end only a pointer."""

from __future__ import annotations

from operator import itemgetter
from typing import cast

from rota.core.workers.worker import WorkerState
from rota.errors import Conflict, Invalid
from rota.store.databases.database import Row, Tx
from rota.store.databases.sqlite.connection_thread import FROZEN
from rota.store.databases.sqlite.sqlite import SqliteTx
from rota.store.promotion.catalogue import Key, Table, catalogue_of, quoted
from rota.store.promotion.mark import PromotionMark, clear_mark, mark_of, set_mark
from rota.store.workers.workers import list_workers

_SHOWN = 3


class FileInUse(Conflict):
    """Workers or leased runs still use the file. The caller may wait for them."""


async def require_idle(tx: Tx) -> None:
    """Raise while workers are alive or runs are leased.

    A frozen file would stop them, too, but they would learn it only when their work is done.
    """
    alive = [worker.name for worker in await list_workers(tx) if worker.state is not WorkerState.GONE]
    if alive:
        names = ", ".join(alive[:_SHOWN]) + (", …" if len(alive) > _SHOWN else "")
        stop = f"`rota workers drain {alive[0]}` lets it finish what it has, `rota workers stop {alive[0]}` ends it"
        hint = f"{stop}; --wait 5m waits for that"
        raise FileInUse(f"workers are running on this database: {names}", hint=hint)
    ((leases, last),) = await tx.fetch_sql(
        "select count(*), (max(expires_at) - :now) / 1000000 + 1 from rota_lease where expires_at > :now"
    )
    if leases:
        hint = "their worker did not hand them back; wait until they have expired: --wait 5m"
        raise FileInUse(f"runs are still leased: {leases}, the last for {last} s", hint=hint)


async def require_storable(tx: Tx) -> None:
    """Raise if a text contains a NUL, which PostgreSQL cannot store. rota writes none, but others may have."""
    for table in (await catalogue_of(tx)).tables.values():
        for column in table.texts:
            for values in await tx.fetch_sql(
                f'select {quoted(table.key)} from {table.name} where instr("{column}", char(0)) > 0 limit 1'
            ):
                key = ", ".join(f"{name} {value!r}" for name, value in zip(table.key, values, strict=True))
                raise Invalid(
                    f"{column} of a row of {table.name} contains a NUL character, which PostgreSQL cannot store: {key}",
                    hint="change that row, or delete it",
                )


async def freeze(tx: Tx, id: str, place: str) -> PromotionMark:
    """Prevent all writes to the file by triggers, whichever program has it open.

    A row written after its table was copied would be lost.
    """
    existing = await mark_of(tx)
    if existing is not None:
        return existing
    await require_idle(tx)
    await require_storable(tx)
    mark = PromotionMark("leaving", id, place)
    await set_mark(tx, mark)
    words = f"{FROZEN}{place}".replace("'", "''")
    for name in (await catalogue_of(tx)).tables:
        for act in ("insert", "update", "delete"):
            await tx.script(
                f"create trigger rota_frozen_{act}_{name} before {act} on {name} "
                f"begin select raise(abort, '{words}'); end"
            )
    return mark


async def thaw(tx: Tx) -> None:
    frozen = "type = 'trigger' and name like 'rota!_frozen!_%' escape '!'"
    for (name,) in await tx.fetch_sql(f"select name from sqlite_master where {frozen}"):
        await tx.script(f"drop trigger {name}")
    await clear_mark(tx)


async def leave(tx: Tx, mark: PromotionMark) -> None:
    """Mark the file as moved. It stays frozen, and tells where the data is."""
    await set_mark(tx, PromotionMark("left", mark.id, mark.place))


async def bite(tx: Tx, table: Table, after: Key | None, rows: int, size: int) -> list[Row]:
    """Return the next rows by key: at most `rows`, or until their texts exceed `size`. Empty at the end."""
    beyond = f"where ({quoted(table.key)}) > ({', '.join('?' * len(table.key))})" if after else ""
    order = f"order by {quoted(table.key)} limit {rows}"
    sql = f"select {quoted(table.columns)} from {table.name} {beyond} {order}"
    texts = [table.columns.index(column) for column in table.texts]
    # The first is named twice: with a single index, itemgetter returns the value and not a tuple.
    long = itemgetter(texts[0], *texts) if texts else lambda row: ()
    batch: list[Row] = []
    length = 0
    for row in cast("SqliteTx", tx).connection.execute(sql, after or ()):
        batch.append(row)
        length += sum(map(len, filter(None, long(row))))
        if length >= size:
            break
    return batch
