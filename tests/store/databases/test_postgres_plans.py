"""No statement goes through all runs, attempts, events or log lines on PostgreSQL, whatever its planner knows of them.

Every named statement is planned as the store plans it: while the tables are new, because such a plan stays, on a
connection that stays, until somebody collects statistics; and while they are large, with statistics that are fresh,
that were collected while the tables were empty, and without any.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from rota.store.databases.pinned_plans import PINNED
from rota.store.databases.postgres.postgres import Connection
from rota.store.databases.statements import POSTGRES, blocks, compile_statement
from tests.conftest import migrated
from tests.support.databases import deep_queues
from tests.support.databases.postgres import PostgresCluster, all_binaries

pytestmark = pytest.mark.postgres

VERSIONS = all_binaries()
MANY, FEWER = 30_000, 2_000
GROWING = {"rota_run", "rota_attempt", "rota_event", "rota_log", "rota_step", "rota_progress", "rota_fault"}
"""Tables that hold what has ended."""
BOUNDED = {
    "newest_ids": "stops at its limit, in the order of the key",
    "begun_and_skipped": "stops at its limit, in the order of the key",
}
HISTORY = (
    """insert into rota_attempt (run_id, fence, no, worker_id, claimed_at, ended_at, outcome)
    select id, 1, 1, 'somebody', created_at, created_at, 'failed' from rota_run where job = 'work'""",
    """insert into rota_event (at, kind, subject, type)
    select created_at, 'run', id::text, 'retried' from rota_run where job = 'work'""",
    """insert into rota_event (at, kind, subject, type)
    select created_at, 'schedule', job, 'triggered' from rota_run where job <> 'work'""",
    "insert into rota_log (run_id, fence, no, attempt, at, lines) select run_id, 1, 1, 1, 1, '[]' from rota_attempt",
    """insert into rota_step (run_id, id, no, state, fence, attempt)
    select run_id, 'fetch', 1, 'succeeded', 1, 1 from rota_attempt""",
    "insert into rota_progress (run_id, fence, at) select run_id, 1, 1 from rota_attempt",
    """insert into rota_fault (run_id, state, job, fingerprint, at)
    select id, 'failed', job, 'print', created_at from rota_run where job = 'work'""",
)
_ONE_JOB = re.compile(r"\(+job = [^()=]+(\(\))?\)*")


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes_of(below)


def is_whole(node: dict[str, Any]) -> bool:
    """Return whether a node reads a whole table or index, or all runs of a job."""
    kind, condition = node["Node Type"], node.get("Index Cond")
    if kind in ("Index Scan", "Index Only Scan", "Bitmap Index Scan"):
        return condition is None or (node.get("Index Name") == "rota_run_job" and bool(_ONE_JOB.fullmatch(condition)))
    return bool(kind == "Seq Scan")


def scanned(plan: dict[str, Any]) -> set[str]:
    """Return the growing tables of which a plan reads everything."""
    return {node["Relation Name"] for node in nodes_of(plan) if is_whole(node)} & GROWING


async def plan_of(connection: Connection, sql: str) -> dict[str, Any]:
    """Return the plan that serves for all values, as `PINNED` wants it."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(PINNED)
        parameters = len((await connection.prepare(sql)).get_parameters())
        await connection.execute(f"prepare explained as {sql}")
        nulls = f"({', '.join(['null'] * parameters)})" if parameters else ""
        found = await connection.fetchval(f"explain (format json) execute explained{nulls}")
        await connection.execute("deallocate explained")
    finally:
        await transaction.rollback()
    plan: dict[str, Any] = json.loads(found)[0]["Plan"]
    return plan


async def scans(url: str) -> dict[str, tuple[set[str], str]]:
    """Return the statements that read everything of a growing table, with these tables and the plan."""
    statements = {name: compile_statement(name, POSTGRES, manual_clock=True).sql for name in blocks("postgres")}
    connection: Connection = await asyncpg.connect(url)
    try:
        plans = {name: await plan_of(connection, sql) for name, sql in statements.items()}
    finally:
        await connection.close()
    return {name: (tables, json.dumps(plan, indent=1)) for name, plan in plans.items() if (tables := scanned(plan))}


def unbounded(found: dict[str, tuple[set[str], str]], knows: str) -> list[str]:
    return [
        f"{name}, with {knows}, reads all of {', '.join(sorted(tables))}\n{plan}"
        for name, (tables, plan) in found.items()
        if name not in BOUNDED
    ]


@pytest.mark.skipif(not VERSIONS, reason="no binaries of PostgreSQL")
@pytest.mark.parametrize("version", sorted({min(VERSIONS), max(VERSIONS)}))
def test_no_statement_goes_through_all_that_has_ended(version: int) -> None:
    with PostgresCluster(settings={"autovacuum": "off", "jit": "on"}, binaries=VERSIONS[version]) as cluster:
        url = cluster.create_database()
        asyncio.run(migrated(url))
        asyncio.run(deep_queues.execute(url, *deep_queues.PREPARE))
        needless, problems = dict(BOUNDED), list[str]()

        def check(knows: str) -> None:
            found = asyncio.run(scans(url))
            problems.extend(unbounded(found, knows))
            for name in found:
                needless.pop(name, None)

        check("new tables")
        asyncio.run(deep_queues.execute(url, "analyze"))
        asyncio.run(deep_queues.fill(url, [deep_queues.PLAIN], MANY))
        asyncio.run(deep_queues.fill(url, deep_queues.OTHERS, FEWER, deep_queues.BESIDES))
        asyncio.run(deep_queues.execute(url, *HISTORY))
        check("statistics of empty tables")
        asyncio.run(deep_queues.execute(url, deep_queues.FORGET))
        check("no statistics")
        asyncio.run(deep_queues.execute(url, "vacuum analyze"))
        check("fresh statistics")
        if problems:
            pytest.fail("\n".join([*(problem.partition("\n")[0] for problem in problems), *problems]))
        assert needless == {}, "no longer needed"


@pytest.mark.skipif(not VERSIONS, reason="no binaries of PostgreSQL")
def test_a_scan_is_seen() -> None:
    """All of them happened: a join turned round, all runs of a job, a condition that no index has."""
    planted = {
        "turned": "select r.queue from rota_lease l join rota_run r on r.id = l.run_id",
        "of a job": "select count(*) from rota_run where job = $1",
        "no index": "select id from rota_run where metadata = $1 limit 10",
        "by key": "select id from rota_run where id = $1",
        "a part of a job": "select id from rota_run where job = $1 and id > $2 order by id limit 10",
    }

    async def found(url: str) -> dict[str, set[str]]:
        connection: Connection = await asyncpg.connect(url)
        try:
            return {name: scanned(await plan_of(connection, sql)) for name, sql in planted.items()}
        finally:
            await connection.close()

    with PostgresCluster(settings={"autovacuum": "off"}, binaries=VERSIONS[max(VERSIONS)]) as cluster:
        url = cluster.create_database()
        asyncio.run(migrated(url))
        seen = asyncio.run(found(url))
    assert {name for name, tables in seen.items() if tables} == {"turned", "of a job", "no index"}
