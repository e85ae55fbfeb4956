"""`rota upcoming`: what is to begin within the next hour."""

from __future__ import annotations

from datetime import datetime

import click

from rota.cli.terminal.cells import row_of
from rota.cli.terminal.format import Cell, Columns, rfc3339, run_id_cell
from rota.cli.terminal.output import on_terminal, print_rows
from rota.cli.verbs.looks import Reply
from rota.cli.verbs.verb_command import verb_command
from rota.client.monitoring.monitoring import MonitoringClient
from rota.core.monitoring.overview import UpcomingRun
from rota.values.durations import span

_COLUMNS = Columns(
    ("at", "in", "job", "schedule", "run", "note"), cut=("job", "schedule", "note"), spare=("note", "run")
)


def _show(reply: Reply) -> None:
    upcoming = reply.value
    length = span(upcoming.to_at - upcoming.from_at)
    rows = [_row(item, upcoming.from_at) for item in upcoming.items]
    print_rows(_COLUMNS, rows, none=f"nothing is to begin within {length}")
    if on_terminal() and upcoming.total > len(upcoming.items):
        click.echo(f"note: {upcoming.total} within {length}, of which {len(upcoming.items)} are listed", err=True)


def _due_cell(item: UpcomingRun, now: datetime) -> Cell:
    left = item.at - now
    return Cell("", span(left)) if left.total_seconds() > 0 else Cell("", f"due {span(-left)} ago", "yellow")


def _note(item: UpcomingRun, _: datetime) -> str:
    """Return why it begins then: the rule of its schedule, or a retry."""
    if item.run_id is not None:
        return f"retry after attempt {item.attempt}" if item.attempt else "delayed"
    parts = [item.rule or ""]
    if item.scopes != 1:
        parts.append("scopes of a provider" if item.scopes is None else f"{item.scopes} scopes")
    if item.more:
        parts.append(f"and {item.more} more times")
    return ", ".join(part for part in parts if part)


_row = row_of(
    _COLUMNS,
    at=lambda item, _: Cell(rfc3339(item.at), f"{item.at:%H:%M:%S} UTC"),
    run=lambda item, _: run_id_cell(item.run_id),
    note=_note,
    **{"in": _due_cell},
)


upcoming = verb_command(
    "monitoring",
    MonitoringClient.upcoming,
    _show,
    "rota upcoming",
    "rota upcoming 1d --each 1",
    "rota upcoming --json | jq '.items[].job'",
)
