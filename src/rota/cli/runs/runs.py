"""`rota run`: list, show, watch and wait for runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from rota.cli.connect import ask
from rota.cli.options import Group, cursor_of, examples, shared
from rota.cli.runs.enqueue import enqueue
from rota.cli.runs.logs import logs
from rota.cli.runs.run_control import COMMANDS
from rota.cli.runs.steps import steps
from rota.cli.runs.watch import watch
from rota.cli.terminal.output import on_terminal, plain_value, print_facts, print_json, print_rows
from rota.cli.terminal.progress import STEP_COLUMNS, RunSnapshot, look_around, progress_facts, related_facts, step_row
from rota.cli.terminal.run_filter import filter_of, filters
from rota.cli.terminal.run_format import (
    ATTEMPT_COLUMNS,
    REPLICA_COLUMNS,
    RUN_COLUMNS,
    attempt_row,
    replica_row,
    run_facts,
    run_row,
)
from rota.cli.terminal.wait import ended, finish
from rota.client.client import MOST_LISTED, Client
from rota.core.workers.replicas import Replica


@click.group(
    cls=Group, epilog=examples("rota run enqueue crawl --wait", "rota run ls --state failed", "rota run watch b3e52e11")
)
def run() -> None:
    """Runs: enqueue, list, count, show, watch, wait for, cancel, retry.

    ID is a run's id, or the beginning or the end of it that no other run has. Runs that were enqueued together
    begin alike: take the end, of four characters or more. Why a run is in its state says `rota explain ID`.
    """


for command in (enqueue, watch, logs, steps, *COMMANDS):
    run.add_command(command)


@run.command(
    "list",
    epilog=examples(
        "rota run ls --state failed,timed_out --job crawl",
        "rota run ls --tag nightly --limit 200 --json",
        "rota run ls --state queued | cut -f1",
    ),
)
@filters
@click.option("--limit", type=int, default=50, show_default=True, metavar="N", help=f"At most {MOST_LISTED}.")
@click.option("--before", metavar="ID", help="The page after the one that ended with this id.")
@shared
def list_runs(limit: int, before: str | None, database: str | None, as_json: bool, **given: Any) -> None:
    """List runs, newest first."""
    wanted = filter_of(given)
    cursor = cursor_of(before)

    async def question(client: Client) -> Any:
        return await client.list(wanted, limit=limit, before=cursor), await client.time()

    runs, now = ask(database, question)
    following = runs[-1].id if len(runs) == limit else None
    if as_json:
        print_json({"items": runs, "next_cursor": following})
        return
    print_rows(RUN_COLUMNS, [run_row(item, now) for item in runs], none="no runs match")
    if following and on_terminal():
        click.echo(f"more: --before {following}", err=True)


@run.command("get", epilog=examples("rota run get b3e52e11", "rota run get b3e52e11 --json"))
@click.argument("id")
@shared
def get(id: str, database: str | None, as_json: bool) -> None:
    """Show a run with its progress, steps, attempts and replicas, what it follows, and what follows it.

    ID is the beginning or the end of an id, or all of it.
    """

    async def question(client: Client) -> tuple[RunSnapshot, Sequence[Replica]]:
        seen = await look_around(client, id)
        return seen, await client.replicas(seen.run.id)

    seen, replicas = ask(database, question)
    if as_json:
        print_json({**seen.document(), **({"replicas": plain_value(replicas)} if replicas else {})})
        return
    print_facts([*run_facts(seen.run, seen.at), *related_facts(seen), *progress_facts(seen)])
    if on_terminal() and seen.progress.steps:
        click.echo()
        print_rows(STEP_COLUMNS, [step_row(step, seen.at) for step in seen.progress.steps], none="")
    rows = [attempt_row(attempt, seen.at) for attempt in seen.attempts]
    if on_terminal() and rows:
        click.echo()
    print_rows(ATTEMPT_COLUMNS, rows, none="")
    if on_terminal() and replicas:
        click.echo()
        print_rows(REPLICA_COLUMNS, [replica_row(one) for one in replicas], none="")


@run.command(
    epilog=examples(
        "rota run wait b3e52e11",
        "rota run wait b3e52e11 --timeout 5m || echo 'did not succeed'",
    ),
)
@click.argument("id")
@click.option("--timeout", metavar="DURATION", help='Give up after this long: "90s", "5m".')
@shared
def wait(id: str, timeout: str | None, database: str | None, as_json: bool) -> int:
    """Wait until a run has ended; the exit code tells how.

    0 succeeded, 1 failed, timed out or expired, 3 cancelled or skipped, 75 still going on after --timeout.
    ID is the beginning or the end of an id, or all of it.
    """
    return finish(ask(database, lambda client: ended(client, id, timeout)), as_json=as_json)
