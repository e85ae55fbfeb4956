"""`rota top`: a live overview on a terminal, or one snapshot."""

from __future__ import annotations

from datetime import timedelta

import click

from rota.cli.connect import ask, server_of, without_password
from rota.cli.options import examples, shared
from rota.cli.terminal.output import can_redraw, emit, print_json
from rota.cli.top.data import SHORTEST, Snapshot, read_snapshot
from rota.client.client import Client
from rota.config import load_config
from rota.errors import Invalid
from rota.values.durations import format_duration, parse_duration


@click.command(
    epilog=examples(
        "rota top",
        "rota --server https://jobs.example.com top --every 5s",
        "rota top --once",
        "rota top --json | jq .overview.live",
    )
)
@click.option(
    "--every", default="2s", show_default=True, metavar="DURATION", help="How often to refresh; at least 500ms."
)
@click.option("--once", is_flag=True, help="Print once and exit. The default without a terminal.")
@shared
def top(every: str, once: bool, database: str | None, as_json: bool) -> int:
    """Show runs, failures, errors, queues and workers, live.

    It also shows the next runs of schedules, and what needs attention. q quits, ? lists the other keys. A run can be
    selected, shown, cancelled and retried. While the database is unavailable, it says so and keeps trying.
    """
    pause = parse_duration(every)
    if pause < SHORTEST:
        raise Invalid(f"--every must be at least {format_duration(SHORTEST)}, not {every}")
    if as_json:
        print_json(ask(database, read_snapshot).document())
    elif once or not can_redraw():
        _print(ask(database, read_snapshot), _where(database))
    else:
        return _run(database, pause)
    return 0


def _where(database: str | None) -> str:
    return server_of(database) or without_password(load_config({"database_url": database}).database_url)


def _print(snapshot: Snapshot, where: str) -> None:
    from rota.cli.terminal.tables import terminal
    from rota.cli.top.canvas import Frame, whole_picture

    console = terminal()
    with console.capture() as written:
        for line in whole_picture(snapshot, snapshot.overview.at, Frame(where=where), console.width):
            console.print(line, no_wrap=True, overflow="crop")
    emit(written.get().removesuffix("\n"))


def _run(database: str | None, every: timedelta) -> int:
    from rota.cli.top.loop import TopLoop
    from rota.cli.top.screen import FullScreen

    where = _where(database)

    async def run(client: Client) -> int:
        return await TopLoop(client, where, every, FullScreen()).stay()

    return ask(database, run)
