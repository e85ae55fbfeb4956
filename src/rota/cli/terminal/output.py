"""Output on stdout: one JSON document, a table on a terminal, or tab-separated lines in a pipe."""

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
    """Print a line. Return False if the reader has gone (`| head`), which is not an error."""
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
    """Return whether the pipe has a reader, for commands that may have nothing to write for long."""
    try:
        watched = select.poll()
        watched.register(sys.stdout, 0)
        return not any(event & select.POLLERR for _, event in watched.poll(0))
    except (AttributeError, OSError, ValueError):  # this system has no poll, or stdout is not a file
        return True


def _write_no_more() -> None:
    """Redirect stdout to nowhere: Python flushes the buffer when it ends, and would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def coloured(text: str, colour: str | None) -> str:
    """Colour the text, unless NO_COLOR is set or the terminal has no colours."""
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return text if unwanted or not colour else click.style(text, fg=colour)


def plain_value(value: object) -> Any:
    """Convert a value to types of JSON, with times in RFC 3339. Durations stay `timedelta`."""
    return msgspec.to_builtins(value, builtin_types=(timedelta,))


def print_json(value: object) -> None:
    emit(json_text(value, indent=2 if on_terminal() else None))


def json_text(value: object, indent: int | None = None) -> str:
    return json.dumps(plain_value(value), ensure_ascii=False, indent=indent, default=format_duration)


def print_rows(columns: Columns, rows: Sequence[Sequence[Cell]], *, none: str) -> None:
    """Print a table, or tab-separated lines in a pipe. `none` is printed on a terminal if there are no rows."""
    if not on_terminal():
        for row in rows:
            emit("\t".join(one_field(cell.plain) for cell in row))
    elif rows:
        from rota.cli.terminal.tables import print_table

        print_table(columns, rows)
    else:
        emit(none)


def print_facts(facts: Sequence[tuple[str, Cell]]) -> None:
    """Print names and values, a pair per line. On a terminal, empty values are left out."""
    if on_terminal():
        from rota.cli.terminal.tables import print_grid

        print_grid([(name, cell) for name, cell in facts if cell.plain or cell.shown])
    else:
        for name, cell in facts:
            emit(f"{name}\t{one_field(cell.plain)}")


def can_redraw() -> bool:
    return on_terminal() and os.environ.get("TERM") not in ("dumb", "unknown")
