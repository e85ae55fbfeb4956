"""Compatibility: a database serves programs of its own schema and, as far as its migrations allow, older ones."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from rota.core.workers.worker import Pace, Presence, WorkerState, presence
from rota.errors import Conflict
from rota.store.databases.database import Tx
from rota.store.databases.statements import Migration
from rota.store.workers.workers import ask_workers

_SAYS_SINCE = 7  # the migration that lets others say whom they serve, and workers of which schema they are
_PACED_SINCE = 3  # workers say how long their lease is
_SHOWN = 3


class WorkersAlive(Conflict):
    """Workers are alive that cannot work with the schema a migration leaves."""

    def __init__(self, migration: Migration, names: list[str]) -> None:
        some = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        super().__init__(
            f"workers are running that cannot work with schema {migration.version}, "
            f"which serves programs of schema {migration.serves} and newer: {some}",
            hint=f"`rota workers drain {names[0]}` lets it finish what it has; `rota migrate --force` stops all",
        )


async def oldest_served(tx: Tx, version: int) -> int:
    """Return the oldest schema of a program that may work with a database at this version."""
    if version < _SAYS_SINCE:
        return version
    ((serves,),) = await tx.fetch_sql(
        "select max(serves) from rota_migration where version >= :since", since=_SAYS_SINCE
    )
    return int(serves)


async def record(tx: Tx, migration: Migration) -> None:
    columns, values = ("", "") if migration.version < _SAYS_SINCE else (", serves", ", :serves")
    await tx.fetch_sql(
        f"insert into rota_migration (version, name, applied_at{columns}) values (:version, :name, :now{values})",
        version=migration.version,
        name=migration.name,
        **({"serves": migration.serves} if values else {}),
    )


async def require_way(tx: Tx, version: int, migration: Migration) -> None:
    """Raise if workers are alive that could not go on after this migration."""
    if workers := await left_behind(tx, version, migration):
        raise WorkersAlive(migration, [name for _, name in workers])


async def ask_to_stop(tx: Tx, version: int, migration: Migration) -> list[str]:
    """Ask those workers to stop, and return their ids. A database that is too old for such a request is only read."""
    ids = [id for id, _ in await left_behind(tx, version, migration)]
    if ids and version >= _SAYS_SINCE:
        await ask_workers(tx, ids, f"migration {migration.version}", WorkerState.STOPPING, None)
    return ids


async def fence_out(tx: Tx, version: int, migration: Migration) -> None:
    """Take the leases of those workers away, in the transaction that changes the tables.

    The fence grows, so that nothing which they still write is accepted: one may be frozen, and wake up afterwards. The
    reaper finds the leases expired.
    """
    for id, _ in await left_behind(tx, version, migration):
        await tx.fetch_sql(
            "update rota_lease set fence = fence + 1, expires_at = :now - 1 where worker_id = :id", id=id
        )


async def left_behind(tx: Tx, version: int, migration: Migration) -> list[tuple[str, str]]:
    """Return (id, name) of the live workers that could not go on after this migration.

    A worker that does not tell its schema may be of the oldest one that is served so far.
    """
    if migration.serves <= await oldest_served(tx, version):
        return []
    # The table has only the columns of the database's own version.
    schema = "schema" if version >= _SAYS_SINCE else "null"
    settings = "settings" if version >= _PACED_SINCE else "null"
    oldest = await oldest_served(tx, version)
    rows = await tx.fetch_sql(
        f"select id, name, {schema}, {settings}, seen_at, :now from rota_worker order by name, id"
    )
    return [
        (id, name)
        for id, name, own, pace, seen_at, now in rows
        if (oldest if own is None else own) < migration.serves and _is_alive(seen_at, now, pace)
    ]


def _is_alive(seen_at: int, now: int, settings: str | None) -> bool:
    lease: timedelta | None = msgspec.json.decode(settings, type=Pace).lease if settings else None
    return presence(seen_at, int(now), lease) is Presence.ALIVE
