"""Many rows for one statement, kept by their columns, as both databases take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, overload

from rota.store.databases.database import Row

Column = Sequence[Any]


class Columns(Sequence[Row]):
    """The rows that these columns make. A column of a single value says the same in each of them.

    Whoever makes thousands of rows makes their columns instead: a tuple for each would be taken apart again at once,
    and keeps the collector of garbage busy meanwhile.
    """

    def __init__(self, count: int, columns: Sequence[Column]) -> None:
        self.columns = columns
        self._count = count

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Columns:
        return rows if isinstance(rows, Columns) else cls(len(rows), columns_of(rows))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        return self.after(0)

    def after(self, first: int) -> Iterator[Row]:
        """Iterate over the rows from that one on."""
        count = self._count - first
        columns = [column[first:] if len(column) > 1 else repeat(column[0], count) for column in self.columns]
        return zip(*columns, strict=True)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        return list(self)[place]


def column(values: Column) -> Column:
    """One value, if that is what all of them say."""
    # The ends first: counting goes through all, and mostly the ends differ already.
    same = len(values) > 1 and values[0] == values[-1] and values.count(values[0]) == len(values)
    return values[:1] if same else values


def columns_of(rows: Sequence[Row]) -> list[Column]:
    if len(column(rows)) == 1:
        return [(value,) for value in rows[0]]
    return [column(values) for values in zip(*rows, strict=True)]
