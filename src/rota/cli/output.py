"""What goes to stdout: one JSON document, a table on a terminal, or tab-separated lines in a pipe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rota.cli.words import Cell, one_field, visible
from rota.durations import format_duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def on_terminal() -> bool:
    return sys.stdout.isatty()


def emit(text: str) -> None:
    """A reader that has gone away (`| head`) is content: the command still ends with its own exit code."""
    try:
        click.echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain_value(value: object) -> Any:
    """Values of the model as JSON writes them: times in RFC 3339, durations as people write them."""
    return msgspec.to_builtins(value, builtin_types=(timedelta,))


def print_json(value: object) -> None:
    emit(json_text(value, indent=2 if on_terminal() else None))


def json_text(value: object, indent: int | None = None) -> str:
    return json.dumps(plain_value(value), ensure_ascii=False, indent=indent, default=format_duration)


def print_rows(titles: Sequence[str], rows: Sequence[Sequence[Cell]], *, none: str) -> None:
    """`none` is what a person reads when there are no rows."""
    if not on_terminal():
        for row in rows:
            emit("\t".join(one_field(cell.plain) for cell in row))
    elif rows:
        _print_table(titles, rows)
    else:
        emit(none)


def print_facts(facts: Sequence[tuple[str, Cell]]) -> None:
    """Name and value, one pair a line; a person is spared the empty ones."""
    if on_terminal():
        _print_grid([(name, cell) for name, cell in facts if cell.plain or cell.shown])
    else:
        for name, cell in facts:
            emit(f"{name}\t{one_field(cell.plain)}")


def _print_table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    fitting = _fitting([[len(title) for title in titles], *[[len(_shown(cell)) for cell in row] for row in rows]])
    for title in titles[:fitting]:
        table.add_column(title, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(_rich(cell) for cell in row[:fitting]))
    _print_rich(table)


def _fitting(lengths: Sequence[Sequence[int]]) -> int:
    """How many columns a narrow terminal has room for: whole ids are worth more than the columns at the end."""
    room = _console().width
    widths = [max(column) + 2 for column in zip(*lengths, strict=True)]
    while len(widths) > 3 and sum(widths) - 2 > room:
        widths.pop()
    return len(widths)


def _print_grid(facts: Sequence[tuple[str, Cell]]) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, cell in facts:
        grid.add_row(name, _rich(cell))
    _print_rich(grid)


def _shown(cell: Cell) -> str:
    return visible(cell.plain if cell.shown is None else cell.shown)


def _rich(cell: Cell) -> RenderableType:
    from rich.text import Text

    return Text(_shown(cell), style=cell.style)


def _print_rich(what: RenderableType) -> None:
    _console().print(what)


def _console() -> Console:
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    return Console(color_system=None if plain else "auto", highlight=False, markup=False, emoji=False)
