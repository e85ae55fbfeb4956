"""`rota error-groups`: failed runs, grouped by error."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from rota.cli.connect import ask
from rota.cli.options import examples, instant_of, scope_of, shared
from rota.cli.terminal.format import Cell, Columns, age_cell, chart, text_cell
from rota.cli.terminal.output import on_terminal, print_json, print_rows
from rota.client.client import Client
from rota.core.monitoring.error_groups import MOST_GROUPS, ErrorGroup
from rota.values.durations import parse_duration

_COLUMNS = Columns(
    ("fingerprint", "job", "count", "when", "first", "last", "run", "error"),
    cut=("job",),
    spare=("first", "run"),
    below=("error",),
)


@click.command(
    epilog=examples(
        "rota error-groups",
        "rota error-groups --since 1h --job crawl",
        "rota run retry --job crawl --fingerprint 4a193dde06e0",
    )
)
@click.option("--since", default="24h", show_default=True, metavar="AGE", help="An age, or a time with a time zone.")
@click.option("--until", type=instant_of, metavar="TIME", help="Before this time.  [default: now]")
@click.option("--job", metavar="NAME", help="Only runs of this job.")
@click.option("--scope", type=scope_of, metavar="KIND/ID", help="Only runs of this scope.")
@click.option("--limit", type=int, default=50, show_default=True, metavar="N", help=f"At most {MOST_GROUPS}.")
@click.option("--cursor", metavar="CURSOR", help="Continue after the page that ended with this cursor.")
@shared
def error_groups(since: str, database: str | None, as_json: bool, **options: Any) -> None:
    """List failed runs, grouped by error.

    Runs that timed out or expired are included. The group with the most recent run comes first.
    """

    async def question(client: Client) -> Any:
        now = await client.time()
        return await client.error_groups.list(since=_instant(since, options["until"] or now), **options), now

    page, now = ask(database, question)
    if as_json:
        print_json(page)
        return
    print_rows(_COLUMNS, [_row(group, now) for group in page.items], none="no errors")
    if page.next_cursor and on_terminal():
        click.echo(f"more: --cursor {page.next_cursor}", err=True)
    if page.truncated and on_terminal():
        click.echo("note: there are more failed runs than were read", err=True)


def _instant(text: str, until: datetime) -> datetime:
    """Parse an age before `until`, or a time."""
    return instant_of(text) if "T" in text or text.count("-") > 1 else until - parse_duration(text)


def _row(group: ErrorGroup, now: datetime) -> list[Cell]:
    error = ": ".join(part for part in (group.type, group.message) if part)
    return [
        text_cell(group.fingerprint),
        text_cell(group.job),
        text_cell(group.count),
        Cell(",".join(map(str, group.histogram)), chart(group.histogram)),
        age_cell(group.first_at, now),
        age_cell(group.last_at, now),
        text_cell(group.last_run_id),
        Cell(error, error.partition("\n")[0], "red"),
    ]
