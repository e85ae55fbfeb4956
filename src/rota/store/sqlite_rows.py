"""Many rows for one statement on SQLite: fifty at a time, and what all of them share is bound once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from rota.store.database import Row

if TYPE_CHECKING:
    import apsw

# More of them would make a text so long that the driver does not keep the compiled statement.
_AT_ONCE = 50
_VALUES = re.compile(r"\bvalues \(([?, \d]+)\)")


def execute_rows(connection: apsw.Connection, sql: str, rows: Sequence[Row]) -> list[Row]:
    """What `executemany` does. A step, with all that is around it, costs as much as what it does to one row."""
    found: list[Row] = []
    whole = len(rows) - len(rows) % _AT_ONCE if _VALUES.search(sql) else 0
    if whole:
        columns = list(zip(*rows[:whole], strict=True))
        shared = tuple(column[0] == column[-1] and column.count(column[0]) == whole for column in columns)
        once = [column[0] for column, same in zip(columns, shared, strict=True) if same]
        own = [column for column, same in zip(columns, shared, strict=True) if not same]
        many, width = _many(sql, shared), len(own) * _AT_ONCE
        values = list(chain.from_iterable(zip(*own, strict=True))) if own else []
        for first in range(0, whole, _AT_ONCE):
            begin = first * len(own)
            found += connection.execute(many, once + values[begin : begin + width]).fetchall()
    if whole < len(rows):
        found += connection.executemany(sql, rows[whole:]).fetchall()
    return found


@lru_cache(maxsize=200)
def _many(sql: str, shared: tuple[bool, ...]) -> str:
    """`values (?, ?, 0)` for fifty rows: parameters of columns that they share first, then those of each row."""
    found = _VALUES.search(sql)
    assert found is not None
    words, once, own = [word.strip() for word in found.group(1).split(",")], sum(shared), shared.count(False)
    places = [sum(shared[:place]) if same else place - sum(shared[:place]) for place, same in enumerate(shared)]

    def values(row: int) -> str:
        numbers = iter(
            f"?{place + 1 if same else once + row * own + place + 1}"
            for place, same in zip(places, shared, strict=True)
        )
        return ", ".join(next(numbers) if word == "?" else word for word in words)

    tuples = ", ".join(f"({values(row)})" for row in range(_AT_ONCE))
    return f"{sql[: found.start()]}values {tuples}{sql[found.end() :]}"
