"""What goes to stdout: one JSON document, a table on a terminal, or tab-separated lines in a pipe."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import click
import msgspec

from rota.cli.terminal.format import Cell, Columns, one_field
from rota.values.durations import format_duration


def on_terminal() -> bool:
    return sys.stdout.isatty()


def emit(text: str) -> bool:
    """A reader that has gone away (`| head`) is content: the command still ends with its own exit code.

    False: nobody reads any more.
    """
    try:
        click.echo(text)
    except BrokenPipeError:
        _write_no_more()
        return False
    except OSError as error:
        _write_no_more()
        raise click.ClickException(f"cannot write the output: {error.strerror}") from None
    return True


def is_read() -> bool:
    """Whether somebody is at the other end of the pipe; asked by those who may have nothing to write for long."""
    try:
        watched = select.poll()
        watched.register(sys.stdout, 0)
        return not any(event & select.POLLERR for _, event in watched.poll(0))
    except (AttributeError, OSError, ValueError):  # no such thing on this system, or no file at all
        return True


def _write_no_more() -> None:
    """What is left in the buffer would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def coloured(text: str, colour: str | None) -> str:
    """Not where colours are not wanted, nor where they would be letters."""
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return text if unwanted or not colour else click.style(text, fg=colour)


def plain_value(value: object) -> Any:
    """Values of the model as JSON writes them: times in RFC 3339, durations as people write them."""
    return msgspec.to_builtins(value, builtin_types=(timedelta,))


def print_json(value: object) -> None:
    emit(json_text(value, indent=2 if on_terminal() else None))


def json_text(value: object, indent: int | None = None) -> str:
    return json.dumps(plain_value(value), ensure_ascii=False, indent=indent, default=format_duration)


def print_rows(columns: Columns, rows: Sequence[Sequence[Cell]], *, none: str) -> None:
    """`none` is what a person reads when there are no rows."""
    if not on_terminal():
        for row in rows:
            emit("\t".join(one_field(cell.plain) for cell in row))
    elif rows:
        from rota.cli.terminal.tables import print_table

        print_table(columns, rows)
    else:
        emit(none)


def print_facts(facts: Sequence[tuple[str, Cell]]) -> None:
    """Name and value, one pair a line; a person is spared the empty ones."""
    if on_terminal():
        from rota.cli.terminal.tables import print_grid

        print_grid([(name, cell) for name, cell in facts if cell.plain or cell.shown])
    else:
        for name, cell in facts:
            emit(f"{name}\t{one_field(cell.plain)}")


def can_redraw() -> bool:
    return on_terminal() and os.environ.get("TERM") not in ("dumb", "unknown")
