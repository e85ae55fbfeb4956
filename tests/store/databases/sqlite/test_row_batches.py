"""Many rows for one statement on SQLite: the same as one after the other."""

from __future__ import annotations

from typing import Any

import apsw
from hypothesis import given
from hypothesis import strategies as st

from rota.store.databases.sqlite.row_batches import AT_ONCE, execute_rows

INSERT = "insert into t (a, b, c, d) values (?, ?, 7, ?) on conflict (a) do nothing"
JOIN = (
    "select t.a, rows.y, t.c from (select column1 as x, column2 as y from (values (?, ?))) as rows "
    "join t on t.a = rows.x"
)


def _filled(rows: list[tuple[Any, ...]], *, at_once: bool) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute("create table t (a integer primary key, b text, c integer, d integer)").fetchall()
    if at_once:
        execute_rows(connection, INSERT, rows)
    else:
        connection.executemany(INSERT, rows).fetchall()
    return connection


@given(st.integers(AT_ONCE, 230), st.sampled_from([1, 2, 500]), st.booleans(), st.booleans())
def test_rows_are_written_as_if_one_by_one(count: int, keys: int, same_text: bool, same_number: bool) -> None:
    rows = [
        (number % keys if keys < 500 else number, "x" if same_text else f"x{number}", None if same_number else number)
        for number in range(count)
    ]
    whole, single = _filled(rows, at_once=True), _filled(rows, at_once=False)
    everything = "select * from t order by a"
    assert whole.execute(everything).fetchall() == single.execute(everything).fetchall()
    assert whole.total_changes() == single.total_changes()


@given(st.integers(AT_ONCE, 130), st.booleans())
def test_rows_are_found_in_their_order(count: int, same: bool) -> None:
    connection = _filled([(number, "x", None) for number in range(200)], at_once=True)
    asked = [(number * 3, "y" if same else f"y{number}") for number in range(count)]
    assert execute_rows(connection, JOIN, asked) == [(a, y, 7) for a, y in asked if a < 200]


def test_a_statement_without_values_takes_them_one_by_one() -> None:
    connection = _filled([(number, "x", number) for number in range(120)], at_once=True)
    execute_rows(connection, "update t set d = ?2 where a = ?1", [(number, -number) for number in range(120)])
    assert connection.execute("select sum(d) from t").fetchall() == [(-sum(range(120)),)]
