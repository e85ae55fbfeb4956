"""Fill a database with many waiting runs, and count the rows that a store operation reads."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg

from rota.store import Store
from rota.store.databases.postgres.postgres import Connection, PostgresDatabase, PostgresTx
from rota.store.databases.statements import Statement

NEED = "need-of-many"
LIMIT = "limit:of-many"

# Runs of later kinds sort behind those of earlier ones, all of them made an hour ago.
IDS = """
do $do$ begin execute format($as$
create function id_of(kind int, n bigint) returns uuid language sql immutable as $$
    select (lpad(to_hex(%s::bigint), 12, '0') || '7' || lpad(to_hex(kind), 3, '0')
        || '8000' || lpad(to_hex(n), 12, '0'))::uuid
$$ $as$, ((extract(epoch from clock_timestamp()) - 3600) * 1000)::bigint); end $do$
"""
RUNS = """
insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, max_attempts, on_lost,
    created_at, run_at, need, parent_id, fence, overrides)
select id_of({kind}, {number}), '{job}', 1, 'default', 0, 'global', 'global', '{{}}', 3, 'retry', {now} - 3600000000,
    {run_at}, {need}, {parent}, null, null
from generate_series(1, {count}) as n
"""
READY = """
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version, limit_key, need)
select id_of({kind}, {number}), 'default', 0, {run_at}, {hold}, 0, 0, 0, '{job}', 1, {limit_key}, {need}
from generate_series(1, {count}) as n
"""
# Every second one is due.
IN_PART_DUE = "{now} + (case when n % 2 = 0 then -1 else 1 end) * 1800000000 + n"
LIMITS = f"""
insert into rota_limit (key, job, max, shut, served_at) values ('{LIMIT}', 'limited', 1000000, 0, 1);
insert into rota_limit (key, job, max, shut, served_at, blocked_by)
select distinct limit_key, 'limited', 1, 2, 1, 'limit:wide' from rota_ready where limit_key <> '{LIMIT}';
insert into rota_limit (key, job, max, shut, served_at) values ('limit:wide', 'limited', 0, 2, 1)
"""


@dataclass(frozen=True)
class Kind:
    """Runs that wait for one thing; without a hold, they are not among those that are ready."""

    no: int
    job: str
    hold: int | None
    number: str = "n"
    run_at: str = "{now} - 1800000000 + n"
    limit_key: str = "null"
    need: str = "null"
    parent: str = "null"


PLAIN = Kind(1, "work", 0)
OTHERS = (
    Kind(2, "later", 1, run_at=IN_PART_DUE),
    Kind(3, "limited", 2, limit_key=f"'{LIMIT}'"),
    Kind(4, "limited", 2, limit_key="'limit:' || n"),
    Kind(5, "limited", 4, run_at=IN_PART_DUE, limit_key=f"'{LIMIT}'"),
    Kind(6, "follower", 3),
    Kind(7, "needy", 6, need=f"'{NEED}'"),
    Kind(8, "needy", 7, run_at=IN_PART_DUE, need=f"'{NEED}'"),
    Kind(9, "many", None, "n * 11", need="'+'"),
    Kind(
        9,
        "many",
        6,
        "((n - 1) / 10 + 1) * 11 + (n - 1) % 10 + 1",
        need="'*'",
        parent="id_of(9, ((n - 1) / 10 + 1) * 11)",
    ),
    Kind(11, "outside", None),
    Kind(12, "conducted", 5, run_at="{now} + 1800000000 + n", need="'+'"),
    Kind(13, "part", 0),
)
REPLICAS = 10  # of a parent, made right behind it
BESIDES = (
    """insert into rota_gate (run_id, key, place, max)
    select run_id, limit_key, 0, 1000000 from rota_ready where limit_key is not null""",
    LIMITS,
    f"insert into rota_need values ('{NEED}', '{{\"labels\": [\"gpu\"]}}'), ('*', '{{}}')",
    "insert into rota_wait (run_id, after_id, kind) select run_id, id_of(1, 900), 1 from rota_ready where hold = 3",
    "update rota_run set followed = 1 where id = id_of(1, 900)",
    """insert into rota_conduct (run_id, fence, attempt, policy, since, look)
    select id, 1, 1, '{"count": 10}', {now}, 0 from rota_run where job = 'many' and parent_id is null""",
    """insert into rota_replica (parent_id, run_id, worker, bound)
    select parent_id, id, null, 0 from rota_run where parent_id is not null""",
    """insert into rota_outside (run_id, fence, attempt, worker_id, claimed_at, since, deadline)
    select id, 1, 1, 'somebody', {now}, {now}, {now} + 1800000000 from rota_run where job = 'outside'""",
    """insert into rota_unique (key, run_id, held_until, once)
    select 'key:' || id, id, 0, 0 from rota_run where job = 'later'""",
    """insert into rota_signal (at, type, kind, subject, job)
    select {now}, 'succeeded', 'run', id::text, 'outside' from rota_run where job = 'outside'""",
    """insert into rota_stage (run_id, pipeline, plan, no, step, job, job_version, queue)
    select id, 'line', '{}', 1, 'first', 'part', 1, 'parts' from rota_run where job = 'part'""",
    "update rota_ready set queue = 'parts' where job = 'part'",
    # What ended is counted; a janitor that finds so many for the first time has more to do, once.
    """insert into rota_job_mark (job, counted) select distinct job, id_of(4095, 0) from rota_run""",
    # Schedules like the one that is there, all of them due.
    """insert into rota_cursor select (jsonb_populate_record(c, jsonb_build_object(
        'no', 1000 + n, 'schedule_id', id_of(20, n), 'next_at', {now} - 60000000 + n))).*
    from rota_cursor c, generate_series(1, {count}) as n""",
    """insert into rota_schedule select (jsonb_populate_record(s, jsonb_build_object(
        'cursor_no', 1000 + n, 'id', id_of(20, n), 'name', 'schedule ' || n))).*
    from rota_schedule s, generate_series(1, {count}) as n""",
)


async def fill(url: str, kinds: Sequence[Kind], count: int, besides: Sequence[str] = ()) -> None:
    """Insert `count` waiting runs of each kind, without updating the database's statistics."""
    connection = await asyncpg.connect(url)
    try:
        ((now,),) = await connection.fetch("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
        for kind in kinds:
            facts = {
                "kind": kind.no, "job": kind.job, "now": now, "hold": kind.hold, "need": kind.need,
                "run_at": kind.run_at.format(now=now), "limit_key": kind.limit_key,
                "parent": kind.parent, "number": kind.number,
                "count": count // REPLICAS if (kind.job, kind.hold) == ("many", None) else count,
            }  # fmt: skip
            await connection.execute(RUNS.format(**facts))
            if kind.hold is not None:
                await connection.execute(READY.format(**facts))
        for statement in besides:
            await connection.execute(statement.replace("{now}", str(now)).replace("{count}", str(count)))
    finally:
        await connection.close()


# Without a log and without room for later versions, filling takes half as long; what is read is the same.
PREPARE = (
    IDS,
    "alter table rota_run set (fillfactor = 100)",
    "alter table rota_run set unlogged",
    "alter table rota_ready set unlogged",
)
# As if nobody had ever looked at the tables: the planner has but their size.
FORGET = """
delete from pg_statistic where starelid in (select oid from pg_class where relname like 'rota\\_%');
update pg_class set relpages = 0, reltuples = -1, relallvisible = 0 where relname like 'rota\\_%' and relkind = 'r'
"""


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


READ = """
select t.relname, t.seq_tup_read + coalesce(t.idx_tup_fetch, 0) + coalesce(i.read, 0),
    p.heap_blks_hit + p.heap_blks_read + coalesce(p.idx_blks_hit, 0) + coalesce(p.idx_blks_read, 0),
    t.n_tup_upd + t.n_tup_del
from pg_stat_user_tables t join pg_statio_user_tables p on p.relid = t.relid
left join (select relid, sum(idx_tup_read)::bigint as read from pg_stat_user_indexes group by relid) as i
    on i.relid = t.relid
"""


@dataclass(frozen=True)
class Reading:
    """`rows`: of each table that was read, with the entries of its indexes; `pages`: of all of them. `dead`: versions
    of rows that were left for vacuum."""

    rows: dict[str, int]
    pages: int
    dead: int = 0

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def __str__(self) -> str:
        most = sorted(self.rows.items(), key=lambda item: -item[1])[:4]
        return f"{self.total} rows ({', '.join(f'{table} {rows}' for table, rows in most)}), {self.pages} pages"


class QuietDatabase(PostgresDatabase):
    """Hints would be sent at any time, on a connection whose counters are being asked for."""

    def notify(self, queues: Iterable[str | None]) -> None:
        """Do nothing: nobody listens."""


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = Store(QuietDatabase(url, deadline=timedelta(minutes=1)))
    try:
        yield store
    finally:
        await store.close()


async def reading(store: Store, operation: Callable[[], Awaitable[object]]) -> Reading:
    """Count what `operation` reads by the server's own counters. Only the store's connections may be active."""
    database = store.database
    assert isinstance(database, PostgresDatabase)
    watching = await database.connect()
    try:
        await _flush(database)
        before = await _read(watching)
        await operation()
        await _flush(database)
        after = await _read(watching)
    finally:
        await watching.close()
    rows = {table: after[table][0] - before[table][0] for table in after}
    pages, dead = (sum(after[table][no] - before[table][no] for table in after) for no in (1, 2))
    return Reading({table: count for table, count in rows.items() if count}, pages, dead)


async def _read(watching: Connection) -> dict[str, tuple[int, int, int]]:
    await watching.execute("select pg_stat_clear_snapshot()")
    return {row[0]: (row[1], row[2], row[3]) for row in await watching.fetch(READ)}


async def _flush(database: PostgresDatabase) -> None:
    """Each connection tells its counters now, and not within a second."""
    for connection in database._idle:
        await connection.execute("select pg_stat_force_next_flush()")


_GENERIC = 16


async def _is_generic(connection: Connection) -> bool:
    return bool(await connection.fetchval("select current_setting('plan_cache_mode') = 'force_generic_plan'"))


@contextmanager
def explaining(patch: Any) -> Iterator[list[str]]:
    """The plans of all statements meanwhile, each as it is made inside the very transaction that runs it."""
    plans: list[str] = []
    run = PostgresTx._run

    async def explained(tx: PostgresTx, statement: Statement, values: dict[str, object]) -> Any:
        generic = tx._connection.get_server_version().major >= _GENERIC and await _is_generic(tx._connection)
        if tx._statements.manual_clock:
            values["now"] = tx._statements.manual_clock.micros()
        given = [values[name] for name in statement.parameters]
        option = "(generic_plan)" if generic else ""
        rows = await tx._connection.fetch(f"explain {option} {statement.sql}", *given)
        plans.append(f"{statement.name}\n" + "\n".join(row[0] for row in rows))
        return await run(tx, statement, values)

    with patch.context() as patched:
        patched.setattr(PostgresTx, "_run", explained)
        yield plans
