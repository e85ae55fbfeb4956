"""Rows kept by their columns are the same rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.store import Store
from rota.store.databases.columns import Columns, column, columns_of
from tests.support.runs.runs import WORK

_rows = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[st.sampled_from([None, 0, 1, "a"])] * width), min_size=1, max_size=6)
)


@given(_rows)
def test_columns_give_their_rows_back(rows: list[tuple[object, ...]]) -> None:
    columns = Columns(len(rows), columns_of(rows))
    assert list(columns) == rows == columns[:]
    assert len(columns) == len(rows)
    assert list(columns.after(1)) == rows[1:]
    assert columns[-1] == rows[-1]


def test_what_all_rows_say_is_kept_once() -> None:
    assert columns_of([(1, "a", None), (2, "a", None)]) == [(1, 2), ("a",), (None,)]
    assert column([7, 8, 7]) == [7, 8, 7]
    assert Columns.of([]).columns == []


async def test_a_statement_takes_as_many_rows_as_there_are(store: Store) -> None:
    """Also if all of them say the same."""
    await store.save_jobs([WORK])
    rows = Columns(3, [(WORK.name,)])
    found = await store.database.read(lambda tx: tx.fetch("job_definitions", rows))
    assert [row[0] for row in found] == [WORK.name] * 3
