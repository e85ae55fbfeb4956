"""rota itself, on both databases."""

from bench.driver import Driver, SqliteDriver

UNFINISHED = "select exists (select 1 from rota_ready) or exists (select 1 from rota_lease)"

# Copies of a run that really finished, so that this need not know the columns.
COPIES = """
insert into {table}
select copy.*
from {table} as original,
    generate_series($1::bigint, $2::bigint) as number,
    lateral jsonb_populate_record(
        original, jsonb_build_object('{id}', '00000000-0000-7000-8000-' || lpad(to_hex(number), 12, '0'))
    ) as copy
where original.{id} = (select {id} from {table} order by {id} desc limit 1)
"""
COPIED = (("rota_run", "id"), ("rota_attempt", "run_id"))
BITE = 100_000


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
                    await connection.execute(COPIES.format(table=table, id=column), first, last)


class RotaSqlite(SqliteDriver):
    name = "rota-sqlite"
    title = "rota, SQLite FULL"
    child = RotaPostgres.name
    unfinished = UNFINISHED
