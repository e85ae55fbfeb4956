"""A crowd in every table that could matter: what waits, is leased or has ended; schedules, limits, jobs and workers.

It is none of the business of the operations that are measured: their costs must not depend on its size.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.databases.statements import POSTGRES, translate
from tests.support.schedules.schedules import make_schedule


class Sizes(msgspec.Struct, frozen=True):
    waiting: int
    ended: int
    leased: int
    schedules: int
    limits: int
    jobs: int
    workers: int

    def times(self, factor: int) -> Sizes:
        return Sizes(**{name: size * factor for name, size in msgspec.structs.asdict(self).items()})


SMALL = Sizes(waiting=1_000, ended=1_000, leased=100, schedules=200, limits=1_000, jobs=100, workers=10)
HOUR = 3_600_000_000
_IDS = {
    "postgres": "(lpad(to_hex({ms} >> 16), 8, '0') || '-' || lpad(to_hex({ms} & 65535), 4, '0') || '-7{kind}-8000-' "
    "|| lpad(to_hex(n), 12, '0'))::uuid",
    "sqlite": "printf('%08x-%04x-7{kind}-8000-%012x', {ms} >> 16, {ms} & 65535, n)",
}
_NUMBERS = "with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < {count})"
_RUN = """
insert into rota_run (id, job, job_version, queue, priority, scope_kind, scope_id, payload, max_attempts, on_lost,
    created_at, run_at, state, attempt, fence, started_at, finished_at, worker_id, error)
{numbers}
select {id}, '{job}', 1, '{queue}', 0, 'global', 'global', '{{}}', 3, 'retry', {at}, {at}, {state}, {attempt},
    {attempt}, {ended}, {ended}, null, {error} from numbers
"""
_FAILED = "case when n % 10 = 0 then {} else {} end"
_ERROR = """'{"type": "Crowded", "message": "no room", "fingerprint": "crowd"}'"""
_WAITING = """
insert into rota_ready (run_id, queue, rank, run_at, hold, solo, attempt, fence, job, job_version)
select id, 'crowd', 0, run_at, {open}, 0, 0, 0, job, 1 from rota_run where job = 'waiting'
"""
_LEASED = """
insert into rota_lease (run_id, fence, attempt, worker_id, claimed_at, expires_at)
select id, 1, 1, 'crowd 1', created_at, {later} from rota_run where job = 'leased'
"""
_LIMITS = """
insert into rota_limit (key, job, max, shut, served_at)
{numbers} select 'crowd ' || n, 'waiting', 1, 1, 1 from numbers
"""
_JOBS = """
insert into rota_job (name, version, definition, declared_at, kind, owner)
{numbers}
select 'crowd ' || n, 1, replace(cast(:definition as text), '?', cast(n as text)), 1, 'http', 'code' from numbers
"""
_WORKERS = """
insert into rota_worker (id, name, host, pid, version, queues, jobs, slots, started_at, seen_at)
{numbers} select 'crowd ' || n, 'crowd', 'host', n, '1', '["crowd"]', '["waiting"]', 10, {now}, {now} from numbers
"""
_HISTORY = (
    """insert into rota_attempt (run_id, fence, no, worker_id, claimed_at, ended_at, outcome)
    select id, 1, 1, 'crowd 1', created_at, created_at, 'failed' from rota_run where state = 'failed' and job = 'work'
        and worker_id is null""",
    """insert into rota_event (at, kind, subject, type)
    select created_at, 'run', cast(id as text), 'retried' from rota_run where state = 'failed' and worker_id is null""",
    """insert into rota_log (run_id, fence, no, attempt, at, lines)
    select id, 1, 1, 1, created_at, '[]' from rota_run where state = 'failed' and worker_id is null""",
    # What ended is counted: a janitor that finds so many for the first time has more to do, once.
    """insert into rota_job_mark (job, counted) select job, max({id}) from rota_run where job = 'work' group by job
    on conflict (job) do update set counted = excluded.counted""",
)
_SCHEDULES = (
    """insert into rota_cursor (no, cursor_at, next_plan, next_at, fired, tzdata)
    {numbers} select 1000000 + n, cursor_at, {later}, {later}, 1, tzdata
    from numbers, (select * from rota_cursor limit 1) as c""",
    """insert into rota_schedule (id, cursor_no, name, job, definition, owner, revision, enabled, created_at,
        updated_at)
    {numbers} select {id}, 1000000 + n, 'crowd ' || n, s.job, s.definition, s.owner, 1, 1, s.created_at, s.updated_at
    from numbers, (select * from rota_schedule limit 1) as s""",
    "update rota_cursor set next_plan = {later}, next_at = {later}",
)


async def fill(store: Store, sizes: Sizes) -> None:
    """Put a crowd into the database, with few statements."""
    if not await store.schedules.get("template"):
        await make_schedule(store, "template")
    await store.database.transact(lambda tx: _fill(tx, sizes, store.clock.micros()))


async def _fill(tx: Tx, sizes: Sizes, now: int) -> None:
    dialect = tx.dialect.name
    definition = msgspec.json.encode(JobDefinition(name="crowd ?")).decode()

    def numbers(count: int) -> str:
        return _NUMBERS.format(count=count)

    def run_id(kind: str, at: str) -> str:
        return _IDS[dialect].format(ms=f"(({at}) / 1000)", kind=kind)

    async def runs(job: str, kind: str, count: int, at: str, **facts: Any) -> None:
        values = {"state": "null", "attempt": "null", "ended": "null", "error": "null", **facts}
        await tx.fetch_sql(
            _RUN.format(job=job, queue="crowd", numbers=numbers(count), id=run_id(kind, at), at=at, **values)
        )

    await runs("waiting", "001", sizes.waiting, f"{now - HOUR} + n")
    await tx.fetch_sql(translate(_WAITING, tx.dialect))
    await runs("leased", "002", sizes.leased, f"{now - HOUR} + n")
    await tx.fetch_sql(_LEASED.format(later=now + 1_000_000 * HOUR))
    # Over three days, the newest of them two hours ago.
    at = f"{now - 74 * HOUR} + cast(n as bigint) * {72 * HOUR // sizes.ended}"
    ended = {
        "state": _FAILED.format("'failed'", "'succeeded'"),
        "attempt": "1",
        "ended": at,
        "error": _FAILED.format(_ERROR, "null"),
    }
    await runs("work", "003", sizes.ended, at, **ended)
    newest = "cast(max(cast(id as text)) as uuid)" if tx.dialect is POSTGRES else "max(id)"
    for statement in _HISTORY:
        await tx.fetch_sql(statement.replace("max({id})", newest))
    await tx.fetch_sql(_LIMITS.format(numbers=numbers(sizes.limits)))
    await tx.fetch_sql(_JOBS.format(numbers=numbers(sizes.jobs)), definition=definition)
    await tx.fetch_sql(_WORKERS.format(numbers=numbers(sizes.workers), now=now + 1_000 * HOUR))
    for statement in _SCHEDULES:
        # The one that they are copies of is not due either.
        facts = {"numbers": numbers(sizes.schedules), "later": now + 1_000_000 * HOUR, "id": run_id("004", str(now))}
        await tx.fetch_sql(statement.format(**facts))
