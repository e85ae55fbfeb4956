"""Place of a PostgreSQL database: compare it with the one recorded, begin an epoch, hold a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

from rota.errors import DatabaseCopied
from rota.store.databases import epoch
from rota.store.databases.epoch import Epoch, Standing
from rota.store.databases.statements import POSTGRES, compile_statement

if TYPE_CHECKING:
    from rota.store.databases.postgres.postgres import Connection

# The last one looks for a column: a database of an older schema records no copies, and is migrated before it is used.
GREETING = """
select (extract(epoch from clock_timestamp()) * 1000000)::bigint, pg_is_in_recovery(), exists (
    select 1 from pg_attribute where attrelid = to_regclass('rota_epoch') and attname = 'is_copy')
"""
_LAST = """
select epoch, place, floor, is_copy <> 0 and accepted_at is null from rota_epoch order by epoch desc limit 1
"""
_BEGIN = """
insert into rota_epoch (epoch, floor, place, since, is_copy, tables)
values ($1, $2, $3, $4, $5, to_regclass('rota_epoch')::oid::bigint)
"""
_ACCEPT = """
update rota_epoch set accepted_at = $1, accepted_by = 'setting:accept_copies'
where epoch = (select max(epoch) from rota_epoch)
"""


MISPLACED = asyncpg.DivisionByZeroError
"""Raised by a claim, whose fence is divided by whether the database is where its epoch began (`{fence_floor}`)."""


async def place_of(connection: Connection) -> str | None:
    """Ask where the database is. None if the server does not tell, as some hosted ones do not: `doctor` says so."""
    try:
        async with connection.transaction():
            return str(await connection.fetchval(compile_statement("place", POSTGRES, manual_clock=False).sql))
    except (
        asyncpg.InsufficientPrivilegeError,
        asyncpg.FeatureNotSupportedError,
        asyncpg.ObjectNotInPrerequisiteStateError,
    ):
        return None


async def _last(connection: Connection) -> tuple[Epoch | None, bool]:
    """Return the last epoch that is recorded, and whether it is that of a copy that nobody has accepted."""
    row = await connection.fetchrow(_LAST)
    if row is None:
        return None, False
    number, place, floor, is_held = row
    return Epoch(number, place, floor), bool(is_held)


async def enter(connection: Connection, standing: Standing, place: str, now: int) -> None:
    """Begin an epoch if the last one was at another place, and learn whether the database is held."""
    try:
        async with connection.transaction():
            await connection.execute("lock table rota_epoch in share row exclusive mode")  # of many, one begins it
            last, was_held = await _last(connection)
            begun = epoch.following(last, place, now)
            held = was_held or epoch.is_copy(last.place if last else None, place)
            if begun is not None:
                await connection.execute(_BEGIN, begun.number, begun.floor, place, now, int(held))
            if held and standing.accepts_copies:
                await connection.execute(_ACCEPT, now)
                held = False
    except asyncpg.InsufficientPrivilegeError:  # who may only read claims nothing
        return
    if begun is not None:
        epoch.tell(begun, last)
    standing.place, standing.moved = place, False
    standing.learn(held=held)


async def require_original(connection: Connection, standing: Standing) -> None:
    """Raise `DatabaseCopied` unless somebody has accepted the database since it was found to be a copy."""
    _, held = await _last(connection)
    standing.learn(held=held)
    if standing.held:
        raise DatabaseCopied
