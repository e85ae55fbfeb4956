"""Many rows for one statement on SQLite: fifty at a time, and what all of them share is bound once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rota.store.databases.columns import Columns
from rota.store.databases.database import Row

if TYPE_CHECKING:
    import apsw

AT_ONCE = 50
"""More of them would make a text so long that the driver does not keep the compiled statement."""
_VALUES = re.compile(r"\bvalues \(([?, \d]+)\)")


def execute_rows(connection: apsw.Connection, sql: str, rows: Sequence[Row]) -> Sequence[Row]:
    """Do what `executemany` does, for at least `AT_ONCE` rows. A step, with all that is around it, costs as much as
    what it does to one row.
    """
    if not _VALUES.search(sql):
        return connection.executemany(sql, rows).fetchall()
    results: list[Row] = []
    table, whole = Columns.of(rows), len(rows) - len(rows) % AT_ONCE
    shared = tuple(len(column) == 1 for column in table.columns)
    once = [column[0] for column in table.columns if len(column) == 1]
    own = [column for column in table.columns if len(column) > 1]
    many = _for_many_rows(sql, shared)
    for first in range(0, whole, AT_ONCE):
        values: list[Any] = once.copy()
        for column in own:
            values += column[first : first + AT_ONCE]
        results += connection.execute(many, values).fetchall()
    if whole < len(table):
        results += connection.executemany(sql, table.after(whole)).fetchall()
    return results


# The text is long, and built once for each statement and set of shared columns.
@lru_cache(maxsize=200)
def _for_many_rows(sql: str, shared: tuple[bool, ...]) -> str:
    """`values (?, ?, 0)` for fifty rows: parameters of columns that they share first, then each of the others."""
    match = _VALUES.search(sql)
    assert match is not None
    words, once = [word.strip() for word in match.group(1).split(",")], sum(shared)
    places = [sum(shared[:place]) if same else place - sum(shared[:place]) for place, same in enumerate(shared)]

    def values(row: int) -> str:
        numbers = iter(
            f"?{place + 1 if same else once + place * AT_ONCE + row + 1}"
            for place, same in zip(places, shared, strict=True)
        )
        return ", ".join(next(numbers) if word == "?" else word for word in words)

    tuples = ", ".join(f"({values(row)})" for row in range(AT_ONCE))
    return f"{sql[: match.start()]}values {tuples}{sql[match.end() :]}"
