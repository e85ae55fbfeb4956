"""Tables on a terminal: which columns fit, which are shortened, which are printed below their row."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import click
import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from rota.cli.terminal.format import Cell, Columns, visible

_GAP = 2
_SHORTEST_CUT, _SHORTEST_WIDE = 12, 24
_BARELY = 5
_INDENT = (0, 0, 0, 4)


def print_table(columns: Columns, rows: Sequence[Sequence[Cell]]) -> None:
    console = terminal()
    in_table = [title for title in columns.titles if title not in columns.below]
    named = _named(columns, in_table, rows, console.width)
    fitting = _fitting(columns, in_table, named, console.width)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for title, width in _widths(columns, fitting, named, console.width).items():
        table.add_column(_line(Cell(title)), width=width)
    for row in named:
        table.add_row(*(_line(row[title]) for title in fitting))
    header, *lines = console.render_lines(table, pad=False)
    console.print(Segments([*header, Segment.line()]), end="")
    for line, row in zip(lines, named, strict=True):
        console.print(Segments([*line, Segment.line()]), end="")
        for title in columns.below:
            if _shown(row[title]):
                console.print(Padding(_text(row[title]), _INDENT))
    if missing := [title for title in in_table if title not in fitting]:
        click.echo(f"too narrow for: {', '.join(missing)} (--json has all)", err=True)


def lines_of(columns: Columns, rows: Sequence[Sequence[Cell]], room: int) -> list[Text]:
    """Return the titles and a line for each row, none wider than `room`, without the columns printed below."""
    in_table = [title for title in columns.titles if title not in columns.below]
    named = _named(columns, in_table, rows, room)
    widths = _widths(columns, _fitting(columns, in_table, named, room), named, room)
    titles = _joined({title: _line(Cell(title)) for title in widths}, widths)
    return [titles, *(_joined({title: _line(row[title]) for title in widths}, widths) for row in named)]


def _joined(cells: dict[str, Text], widths: dict[str, int]) -> Text:
    for title, width in widths.items():
        cells[title].truncate(width, overflow="ellipsis", pad=True)
    line = Text(" " * _GAP, no_wrap=True, overflow="ellipsis").join(cells.values())
    line.rstrip()
    return line


def _named(columns: Columns, titles: list[str], rows: Sequence[Sequence[Cell]], room: int) -> list[dict[str, Cell]]:
    """Return the rows by title; with brief cells if a column would be left out otherwise."""
    named = [dict(zip(columns.titles, row, strict=True)) for row in rows]
    if len(_fitting(columns, titles, named, room)) == len(titles):
        return named
    return [{title: _brief(cell) for title, cell in row.items()} for row in named]


def _brief(cell: Cell) -> Cell:
    return cell if cell.brief is None else msgspec.structs.replace(cell, shown=cell.brief)


def _fitting(columns: Columns, titles: list[str], rows: Sequence[dict[str, Cell]], room: int) -> list[str]:
    """Return the columns that fit: spare ones are left out, the last one first."""
    fitting = list(titles)
    spare = [title for title in columns.spare if title in titles]
    least = {title: min(_width(title, rows), _least(columns, title, room)) for title in titles}
    while spare and _total([least[title] for title in fitting]) > room:
        fitting.remove(spare.pop())
    return fitting


def _least(columns: Columns, title: str, room: int) -> int:
    if title in columns.wide:
        return _SHORTEST_WIDE
    return _SHORTEST_CUT if title in columns.cut else room


def _widths(columns: Columns, titles: list[str], rows: Sequence[dict[str, Cell]], room: int) -> dict[str, int]:
    """Return the width of each column. The widest is shortened first: of those that may be cut, then of all."""
    widths = {title: _width(title, rows) for title in titles}
    for yielding, least in (([title for title in titles if title in columns.cut], _BARELY), (titles, 1)):
        while _total(widths.values()) > room and any(widths[title] > least for title in yielding):
            widths[max(yielding, key=widths.__getitem__)] -= 1
    return widths


def _total(widths: Collection[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _width(title: str, rows: Sequence[dict[str, Cell]]) -> int:
    return max([Text(title).cell_len, *(_line(row[title]).cell_len for row in rows)])


def print_grid(facts: Sequence[tuple[str, Cell]]) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, cell in facts:
        grid.add_row(name, _text(cell))
    terminal().print(grid)


def _shown(cell: Cell) -> str:
    return visible(cell.plain if cell.shown is None else cell.shown)


def _text(cell: Cell) -> Text:
    return Text(_shown(cell), style=cell.style, overflow="fold")


def _line(cell: Cell) -> Text:
    return Text(" ".join(_shown(cell).split()), style=cell.style, no_wrap=True, overflow="ellipsis")


def terminal() -> Console:
    """Return a console with colours, unless NO_COLOR is set, that never takes text for markup."""
    plain = bool(os.environ.get("NO_COLOR"))
    return Console(color_system=None if plain else "auto", highlight=False, markup=False, emoji=False)
