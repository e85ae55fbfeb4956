"""`rota promote`: move everything from an SQLite file to PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from rota.cli.connect import actor, require_database, require_existing
from rota.cli.options import examples, shared
from rota.cli.terminal.output import emit, on_terminal, print_json
from rota.config import load_config
from rota.errors import Invalid
from rota.store import dialect_of, open_database
from rota.store.databases.statements import POSTGRES, SQLITE
from rota.values.durations import parse_duration

if TYPE_CHECKING:
    from rota.client.promotion import Moved, Promoted

# A batch of rows is written within seconds; counting or analyzing all tables may take longer.
_DEADLINE = timedelta(minutes=15)


@click.command(
    epilog=examples(
        "rota promote --to postgresql://rota@db/rota --dry-run   show what would be moved",
        "rota promote --to postgresql://rota@db/rota --wait 5m   wait up to five minutes for workers to stop",
    )
)
@click.option("--to", "to", required=True, metavar="URL", help="An empty database: postgresql://USER@HOST/NAME.")
@click.option(
    "--wait", type=parse_duration, metavar="TIME", help="Wait this long for workers to stop and leases to expire."
)
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be moved, or what prevents it.")
@click.option("--abandon", is_flag=True, help="Undo an unfinished promotion, so that the file can be used again.")
@shared
def promote(to: str, wait: timedelta | None, dry_run: bool, abandon: bool, database: str | None, as_json: bool) -> None:
    """Move everything from an SQLite file to PostgreSQL.

    That is jobs, schedules, runs and their history. Stop the workers first. Meanwhile neither database can be written
    to. After an interruption, run it again: it continues. Afterwards the file keeps its data, and programs that open it
    are told the new place.
    """
    from rota.client.promotion import place_of

    url = require_database(database)
    _require_kinds(url, to)
    require_existing(url)
    if abandon:
        asyncio.run(_abandon(url, to))
        _print_abandoned(as_json=as_json)
        return
    with _progress_bar(progress=not (as_json or dry_run)) as tell:
        done = asyncio.run(_promote(url, to, wait, tell, dry_run=dry_run))
    if as_json:
        document = {"to": done.to, "rows": done.rows, "tables": done.tables, "ledgers": done.ledgers}
        print_json({**document, "already": done.already, "dry_run": dry_run})
    elif on_terminal():
        emit(_summary(done, place_of(to), dry_run=dry_run))
    else:
        for name, rows in done.tables.items():
            emit(f"{name}\t{rows}")


def _require_kinds(source: str, target: str) -> None:
    if dialect_of(target) is not POSTGRES:
        raise Invalid("--to must be a PostgreSQL database", hint="write postgresql://user:password@host/database")
    if dialect_of(source) is not SQLITE:
        raise Invalid("this database is on PostgreSQL already", hint="give the file with --database sqlite:///rota.db")


async def _promote(
    source: str, target: str, wait: timedelta | None, tell: Callable[[Moved], None], *, dry_run: bool
) -> Promoted:
    from rota.client.promotion import Promotion, place_of

    here, there = open_database(source), open_database(target, deadline=max(_DEADLINE, load_config().deadline))
    try:
        promotion = Promotion(here, there, place_of(target), tell, actor=actor())
        return await promotion.look() if dry_run else await promotion.promote(wait)
    finally:
        await there.close()
        await here.close()


async def _abandon(source: str, target: str) -> None:
    from rota.client.promotion import Promotion, place_of

    here, there = open_database(source), open_database(target, deadline=_DEADLINE)
    try:
        await Promotion(here, there, place_of(target)).abandon()
    finally:
        await there.close()
        await here.close()


def _print_abandoned(*, as_json: bool) -> None:
    if as_json:
        print_json({"abandoned": True})
    elif on_terminal():
        emit("the promotion is undone: use the file as before")


def _summary(done: Promoted, place: str, *, dry_run: bool) -> str:
    filled = sum(1 for rows in done.tables.values() if rows)
    rows = f"{done.rows} rows of {filled} tables"
    if dry_run:
        return f"would move {rows} to {place}"
    if done.already:
        return f"everything has already been moved to {place}"
    ledgers = f"{done.ledgers} ledger{'' if done.ledgers == 1 else 's'} verified"
    return f"moved {rows} to {place}; {ledgers}\nnext: set database_url to it, and start your workers"


@contextmanager
def _progress_bar(*, progress: bool) -> Iterator[Callable[[Moved], None]]:
    """Show a progress bar on a terminal, which disappears at the end."""
    if not (progress and on_terminal()):
        yield lambda moved: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from rota.cli.terminal.tables import terminal

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=terminal(), transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda moved: shown.update(task, completed=moved.rows, total=moved.total, description=moved.table)
