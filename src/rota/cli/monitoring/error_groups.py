"""`rota error-groups`: failed runs, grouped by error."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from rota.cli.options import instant_of
from rota.cli.terminal.cells import row_of
from rota.cli.terminal.format import Cell, Columns, chart
from rota.cli.terminal.output import on_terminal, print_rows
from rota.cli.verbs.looks import Reply
from rota.cli.verbs.verb_command import verb_command
from rota.client.client import Client
from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.core.monitoring.error_groups import ErrorGroup
from rota.values.durations import parse_duration

_COLUMNS = Columns(
    ("fingerprint", "job", "count", "when", "first", "last", "run", "error"),
    cut=("job",),
    spare=("first", "run"),
    below=("error",),
)


def _since(text: str) -> datetime | timedelta:
    """Parse a time, or an age."""
    return instant_of(text) if "T" in text or text.count("-") > 1 else parse_duration(text)


async def _with_times(client: Client, arguments: dict[str, Any]) -> dict[str, Any]:
    """Replace an age by the time so long before the end."""
    since = arguments["since"]
    if isinstance(since, timedelta):
        arguments["since"] = (arguments.get("until") or await client.time()) - since
    return arguments


def _show(reply: Reply) -> None:
    groups = reply.value
    print_rows(_COLUMNS, [_row(group, reply.now) for group in groups.items], none="no errors")
    if groups.next_cursor and on_terminal():
        click.echo(f"more: --cursor {groups.next_cursor}", err=True)
    if groups.truncated and on_terminal():
        click.echo("note: there are more failed runs than were read", err=True)


def _error_cell(group: ErrorGroup, _: datetime) -> Cell:
    error = ": ".join(part for part in (group.type, group.message) if part)
    return Cell(error, error.partition("\n")[0], "red")


_row = row_of(
    _COLUMNS,
    when=lambda group, _: Cell(",".join(map(str, group.histogram)), chart(group.histogram)),
    first="first_at",
    last="last_at",
    run="last_run_id",
    error=_error_cell,
)


error_groups = verb_command(
    "error_groups",
    ErrorGroupsClient.list,
    _show,
    "rota error-groups",
    "rota error-groups --since 1h --job crawl",
    "rota run retry --job crawl --fingerprint 4a193dde06e0",
    name="error-groups",
    words="List failed runs, grouped by error.\n\n"
    "Runs that timed out or expired are included. The group with the most recent run comes first.",
    settings={
        "since": {
            "type": _since,
            "default": "24h",
            "show_default": True,
            "metavar": "AGE",
            "help": "An age, or a time with a time zone.",
        }
    },
    refine=_with_times,
)
