"""rota itself, on both databases."""

import time

from benchmarks.harness.driver import Driver, SqliteDriver

UNFINISHED = "select exists (select 1 from rota_ready) or exists (select 1 from rota_lease)"

# Copies of a run that really finished, so that this need not know the columns.
COPIES = """
insert into {table}
select copy.*
from {table} as original,
    generate_series($1::bigint, $2::bigint) as number,
    lateral jsonb_populate_record(
        original, jsonb_build_object('{id}', '{time}-7000-8000-' || lpad(to_hex(number), 12, '0'))
    ) as copy
where original.{id} = (select {id} from {table} order by {id} desc limit 1)
"""
COPIED = (("rota_run", "id"), ("rota_attempt", "run_id"))
BITE = 100_000


def an_hour_ago() -> str:
    """The part of an id that tells its time: runs that look old to the janitor would be looked at one by one."""
    digits = f"{int((time.time() - 3600) * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}"


class RotaPostgres(Driver):
    name = "rota"
    title = "rota"
    unfinished = UNFINISHED

    async def age(self, rows: int) -> None:
        await self.enqueue_bulk(1)
        await self.drain(1)
        async with self.cluster.connect(self.url) as connection:
            there = await connection.fetchval("select count(*) from rota_run")
            for first in range(there, there + rows, BITE):
                last = min(first + BITE, there + rows) - 1
                for table, column in COPIED:
                    await connection.execute(COPIES.format(table=table, id=column, time=an_hour_ago()), first, last)


class RotaOne(RotaPostgres):
    name = "rota-one"
    title = "rota, a run at a time"
    share = 0.2
    batched = False
    child = "rota_one"


class RotaSqlite(SqliteDriver):
    name = "rota-sqlite"
    title = "rota, SQLite FULL"
    child = RotaPostgres.name
    unfinished = UNFINISHED
