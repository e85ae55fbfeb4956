"""Looks of what verbs answer, for people and for pipes: a table, facts, or a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from rota.cli.terminal.format import Cell, Columns, one_field, visible
from rota.cli.terminal.output import emit, on_terminal, print_facts, print_rows


class Reply(msgspec.Struct, frozen=True):
    """Answer of a verb. `value` of a list is one page of it.

    `typed` holds the values of the command's arguments and options, `arguments` those of the verb. `before` is what
    was read before the act, `also` what was read after it.
    """

    value: Any
    now: datetime
    typed: Mapping[str, Any]
    arguments: Mapping[str, Any]
    next_cursor: str | None = None
    before: Any = None
    also: Any = None


Look = Callable[[Reply], None]


def table(columns: Columns, row: Callable[[Any, datetime], Sequence[Cell]], none: str = "") -> Look:
    """Print a row for each item, or for the one object. `none` is printed on a terminal if there is none."""

    def show(reply: Reply) -> None:
        items = reply.value if isinstance(reply.value, Sequence) else [reply.value]
        print_rows(columns, [row(item, reply.now) for item in items], none=none)
        if reply.next_cursor is not None and on_terminal():
            click.echo(f"more: --cursor {reply.next_cursor}", err=True)

    return show


def facts(of: Callable[[Any, datetime], Sequence[tuple[str, Cell]]]) -> Look:
    """Print names and values of one object, a pair a line."""

    def show(reply: Reply) -> None:
        print_facts(of(reply.value, reply.now))

    return show


def sentence(words: str) -> Look:
    """Say on a terminal what was done: `sentence("queue {name} is paused")`; in a pipe, print what it was done to.

    Braces hold arguments of the command or the verb, or `answer`.
    """

    def show(reply: Reply) -> None:
        if on_terminal():
            emit(visible(words.format(**{**reply.typed, **reply.arguments}, answer=reply.value)))
        else:
            emit(one_field(str(next(value for value in reply.typed.values() if value is not None))))

    return show
