"""`rota run`: list, show, wait for, cancel and retry runs."""

from __future__ import annotations

from typing import Any

import click

from rota.cli.adding import add
from rota.cli.connecting import actor, ask
from rota.cli.options import cursor_of, examples, names_of, scope_of, shared, states_of
from rota.cli.output import on_terminal, plain_value, print_facts, print_json, print_rows
from rota.cli.showing import ATTEMPT_COLUMNS, RUN_COLUMNS, attempt_row, print_new_run, print_run, run_facts, run_row
from rota.cli.waiting import ended, finish
from rota.client import MOST_LISTED, Client
from rota.core.model import Run, RunFilter
from rota.core.scope import Scope


@click.group()
def run() -> None:
    """Runs: enqueue, list, show, wait for, cancel, retry.

    ID is a run's id, or the beginning or the end of it that no other run has. Runs that were enqueued together
    begin alike: take the end, of four characters or more.
    """


run.add_command(add)


@run.command(
    epilog=examples(
        "rota run ls --state failed,timed_out --job crawl",
        "rota run ls --tag nightly --limit 200 --json",
        "rota run ls --state queued | cut -f1",
    )
)
@click.option("--state", "states", type=names_of, multiple=True, metavar="STATE", help="Only these; comma-separated.")
@click.option("--job", metavar="NAME")
@click.option("--queue", metavar="NAME")
@click.option("--schedule", metavar="NAME")
@click.option("--tag", metavar="TAG")
@click.option("--key", metavar="KEY")
@click.option("--scope", type=scope_of, metavar="KIND/ID")
@click.option("--limit", type=int, default=50, show_default=True, metavar="N", help=f"At most {MOST_LISTED}.")
@click.option("--before", metavar="ID", help="The page after the one that ended with this id.")
@shared
def ls(states: Any, limit: int, before: str | None, database: str | None, as_json: bool, **given: Any) -> None:
    """List runs, newest first."""
    scope = given.pop("scope")
    wanted = RunFilter(states=states_of(states), scope=Scope(*scope) if scope else None, **given)
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


@run.command(epilog=examples("rota run show b3e52e11", "rota run show b3e52e11 --json"))
@click.argument("id")
@shared
def show(id: str, database: str | None, as_json: bool) -> None:
    """Show a run with its attempts.

    ID is the beginning or the end of an id, or all of it.
    """

    async def question(client: Client) -> Any:
        found = await client.get(id)
        return found, await client.attempts(found.id), await client.time()

    found, attempts, now = ask(database, question)
    if as_json:
        print_json({**plain_value(found), "attempts": attempts})
        return
    print_facts(run_facts(found, now))
    rows = [attempt_row(attempt, now) for attempt in attempts]
    if on_terminal() and rows:
        click.echo()
    print_rows(ATTEMPT_COLUMNS, rows, none="")


@run.command(
    epilog=examples(
        "rota run wait b3e52e11",
        "rota run wait b3e52e11 --timeout 5m || echo 'did not succeed'",
    )
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


@run.command(epilog=examples("rota run cancel b3e52e11 --reason 'wrong url'"))
@click.argument("id")
@click.option("--reason", metavar="TEXT", help="Kept with the run.")
@shared
def cancel(id: str, reason: str | None, database: str | None, as_json: bool) -> None:
    """Cancel a run: at once, or by asking its worker to stop.

    ID is the beginning or the end of an id, or all of it.
    """

    async def command(client: Client) -> Any:
        found = await client.get(id)
        await client.cancel(found.id, reason=reason, actor=actor())
        return await client.get(found.id)

    print_run(ask(database, command), as_json=as_json)


@run.command(epilog=examples("rota run retry b3e52e11 --wait"))
@click.argument("id")
@click.option("--wait", "waiting", is_flag=True, help="Wait for the new run's end.")
@shared
def retry(id: str, waiting: bool, database: str | None, as_json: bool) -> int:
    """Do a finished run's work again, as a new run.

    ID is the beginning or the end of an id, or all of it.
    """

    async def command(client: Client) -> Run:
        new = await client.retry(id)
        return await (ended(client, new.id, None) if waiting else client.get(new.id))

    again = ask(database, command)
    if waiting:
        return finish(again, as_json=as_json)
    print_new_run(again, as_json=as_json)
    return 0
