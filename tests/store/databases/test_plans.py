"""No statement goes through all runs, attempts, events or log lines on SQLite: every plan is read."""

import re
from collections.abc import Iterator

import apsw
import pytest

from rota.store.databases.statements import SQLITE, blocks, compile_statement

GROWING = {"rota_run", "rota_attempt", "rota_event", "rota_log", "rota_step", "rota_progress"}
"""Tables that hold what has ended."""
BOUNDED = {
    "newest_ids": "stops at its limit, in the order of the key",
    "begun_and_skipped": "stops at its limit, in the order of the key",
}
_TABLE = re.compile(r"\b(?:from|join|update|into)\s+(rota_\w+)(?:\s+(?:as\s+)?(?!where|on|set|order|limit)(\w+))?")
_SCAN = re.compile(r"SCAN (\w+)")
_RUNS_OF_JOB = re.compile(r"SEARCH \w+ USING (?:COVERING )?INDEX rota_run_job \(job=\?\)")
_SUBQUERY = re.compile(r"(?:CO-ROUTINE|MATERIALIZE) (\w+)")


@pytest.fixture
def connection(sqlite_url: str) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    yield connection
    connection.close()


def plan_of(connection: apsw.Connection, sql: str) -> list[str]:
    without_values = re.sub(r"\?\d*|(?<![:\w]):[a-z_]+", "null", sql)
    return [detail for *_, detail in connection.execute(f"explain query plan {without_values}")]


def names_in(sql: str) -> dict[str, str]:
    """Return the tables that a statement or view names, by their aliases."""
    return {alias or table: table for table, alias in _TABLE.findall(sql)}


def scanned(connection: apsw.Connection, sql: str) -> set[str]:
    """Return the growing tables that a statement reads wholly, or all runs of a job, and the views that it builds."""
    views = dict(connection.execute("select name, sql from sqlite_master where type = 'view'"))
    inside = {alias: table for text in views.values() for alias, table in names_in(text).items()}
    plan = plan_of(connection, sql)
    subqueries = {name for line in plan for name in _SUBQUERY.findall(line)}
    names = {**inside, **names_in(sql)}
    scans = {name for line in plan for name in _SCAN.findall(line)} - subqueries
    of_job = {"rota_run" for line in plan if _RUNS_OF_JOB.fullmatch(line)}
    return {names.get(name, name) for name in scans} & GROWING | subqueries & views.keys() | of_job


def test_no_statement_goes_through_all_that_has_ended(connection: apsw.Connection) -> None:
    statements = {name: compile_statement(name, SQLITE, manual_clock=True).sql for name in blocks("sqlite")}
    scans = {name: tables for name, sql in statements.items() if (tables := scanned(connection, sql))}
    assert {name: tables for name, tables in scans.items() if name not in BOUNDED} == {}
    assert BOUNDED.keys() - scans.keys() == set(), "no longer needed"


def test_a_scan_and_a_whole_view_are_seen(connection: apsw.Connection) -> None:
    """All of them happened: joins that SQLite turned round, and an outer join with a view."""
    turned = "select r.queue, count(*) from rota_lease l join rota_run r on r.id = l.run_id group by r.queue"
    assert scanned(connection, turned) == {"rota_run"}
    of_job = "select l.run_id from rota_lease l join rota_run r on r.id = l.run_id where r.job = 'a'"
    assert scanned(connection, of_job) == {"rota_run"}
    outer = "select n.state from rota_followed f left join rota_run_now n on n.id = f.after_id where f.run_id = 1"
    assert "rota_run_now" in scanned(connection, outer)
    assert scanned(connection, "select r.id from rota_run r where r.id = 1") == set()
