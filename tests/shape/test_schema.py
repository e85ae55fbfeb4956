"""The tables agree with `core/`, and with each other on both databases."""

import re
from collections import Counter

import asyncpg
import pytest

from rota.core.jobs.job import MAX_PRIORITY, MIN_PRIORITY
from rota.core.progress.steps import RECORDED
from rota.core.states import FINAL_STATES, Outcome
from rota.store import Store, open_database
from rota.store.databases.database import Tx
from rota.store.databases.statements import POSTGRES, SQLITE, Dialect, blocks, compile_statement, migrations
from tests.shape.sql_files import sql_files

_OWN_FORMS = (SQLITE.name, POSTGRES.name)

Columns = dict[str, list[tuple[str, str, bool]]]


def script(dialect: Dialect) -> str:
    return "\n".join(one.script for one in migrations(dialect))


def listed(table: str, column: str, text: str) -> set[str]:
    """The words of a table's `check (column in (…))`."""
    found = re.search(rf"create table {table} \(.*?\b{column} in\s*\(([^)]*)\)", text, re.DOTALL)
    assert found
    return set(re.findall(r"'(\w+)'", found[1]))


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=lambda dialect: dialect.name)
def test_the_checks_are_cores_own_lists(dialect: Dialect) -> None:
    assert listed("rota_run", "state", script(dialect)) == {state.value for state in FINAL_STATES}
    assert listed("rota_step", "state", script(dialect)) == {state.value for state in RECORDED}
    assert listed("rota_attempt", "outcome", script(dialect)) == {outcome.value for outcome in Outcome} - {"succeeded"}


def test_a_statement_has_a_name_of_its_own() -> None:
    """Only a database's own file may replace one: another of the same name would be used instead, unnoticed."""
    texts = [text for file, text in sql_files().items() if not file.startswith("databases/")]
    names = Counter(name for text in texts for name in re.findall(r"^-- name: (\w+)", text, re.MULTILINE))
    assert [name for name, times in names.items() if times > 1] == []


def test_priorities_fit_their_column() -> None:
    assert -(2**15) <= MIN_PRIORITY < MAX_PRIORITY < 2**15


async def test_both_databases_have_the_same_tables_and_columns(sqlite_url: str, postgres_url: str) -> None:
    sqlite, postgres = await tables_of(sqlite_url), await tables_of(postgres_url)
    # A table in the one and a view in the other: the names of its columns are what questions rely on.
    assert [name for name, *_ in sqlite.pop("rota_fault")] == [name for name, *_ in postgres.pop("rota_fault")]
    assert sqlite == postgres


async def tables_of(url: str) -> Columns:
    """Table or view → its columns in order: name, kind, and whether it must be given."""
    store = Store(open_database(url))
    await store.migrate()
    try:
        return await store.database.read(_postgres_tables if store.database.dialect is POSTGRES else _sqlite_tables)
    finally:
        await store.close()


KINDS = {
    "uuid": "text",
    "bigint": "integer",
    "smallint": "integer",
    "int": "integer",
    "double precision": "real",
}


async def _postgres_tables(tx: Tx) -> Columns:
    rows = await tx.fetch_sql(
        "select table_name, column_name, data_type, is_nullable from information_schema.columns "
        "where table_schema = current_schema() and table_name like 'rota%' order by table_name, ordinal_position"
    )
    tables: Columns = {}
    for table, column, kind, nullable in rows:
        tables.setdefault(table, []).append((column, _kind(kind), nullable == "NO"))
    return {table: _plain(table, columns) for table, columns in tables.items()}


async def _sqlite_tables(tx: Tx) -> Columns:
    names = await tx.fetch_sql("select name from sqlite_master where type in ('table', 'view') and name like 'rota%'")
    tables: Columns = {}
    for (table,) in names:
        rows = await tx.fetch_sql('select name, type, "notnull", pk from pragma_table_info(:table)', table=table)
        columns = [(str(name), _kind(kind), bool(required or key)) for name, kind, required, key in rows]
        tables[table] = _plain(table, columns)
    return tables


def _kind(named: str) -> str:
    return KINDS.get(named.lower(), named.lower())


def _plain(table: str, columns: list[tuple[str, str, bool]]) -> list[tuple[str, str, bool]]:
    """A view's columns have no kind of their own on SQLite."""
    return [(name, "", False) for name, _, _ in columns] if table.endswith("_now") else columns


async def test_every_statement_is_understood_by_its_database(postgres_url: str, sqlite_url: str) -> None:
    """Also those that no other test happens to use."""
    store = Store(open_database(postgres_url))
    await store.migrate()
    await store.close()
    connection = await asyncpg.connect(postgres_url)
    for name in blocks("postgres"):
        if name != "enqueue_one":  # for other people's drivers: their notation
            await connection.prepare(compile_statement(name, POSTGRES, manual_clock=False).sql)
    await connection.close()
    store = Store(open_database(sqlite_url))
    await store.migrate()

    async def explain(tx: Tx) -> None:
        for name in blocks("sqlite"):
            if name in blocks("postgres"):
                statement = compile_statement(name, SQLITE, manual_clock=True)
                values = dict.fromkeys((*statement.parameters, "now"))
                # One that is executed row by row has numbered values.
                sql = re.sub(r"\?\d*", "null", statement.sql) if "?" in statement.sql else statement.sql
                await tx.fetch_sql(f"explain {sql}", **values)

    await store.database.transact(explain)
    await store.close()


async def test_schedules_of_a_provider_are_found_by_an_index(sqlite_url: str) -> None:
    store = Store(open_database(sqlite_url))
    await store.migrate()

    async def explain(tx: Tx) -> str:
        statement = compile_statement("note_provider_trouble", SQLITE, manual_clock=True)
        values = dict.fromkeys((*statement.parameters, "now"))
        return str(await tx.fetch_sql(f"explain query plan {statement.sql}", **values))

    assert "rota_cursor_provider" in await store.database.transact(explain)
    await store.close()
