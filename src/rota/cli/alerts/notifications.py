"""`rota notification`: list, create, delete and test notifications."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from rota.cli.connect import actor, ask
from rota.cli.options import Group, examples, shared
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.format import Cell, Columns, instant_cell, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_deleted, print_facts, print_json, print_rows
from rota.client.client import Client
from rota.core.alerts.notifications import AT_MOST, ENV, ON, NotificationView
from rota.errors import Invalid

_COLUMNS = Columns(("name", "state", "on", "to", "of"), cut=("to", "of"))
_CODE = "it is declared in code, and comes back at the next start unless it is removed there"
_NONE = "no notifications: create one with `rota notification create`, or app.notify(…) in code"

name = click.argument("name")


@click.group(
    cls=Group,
    epilog=examples(
        "rota notification create ops --to mailto:ops@example.com",
        "rota notification create chat --to https://example.com/hook --secret env:HOOK_SECRET --on failure --on missed",
        "rota notification test ops",
    ),
)
def notification() -> None:
    """List, create, delete and test notifications.

    A notification is sent as a signed webhook or an e-mail.
    """


@notification.command("list", epilog=examples("rota notification list", "rota notification list --json"))
@shared
def list_notifications(database: str | None, as_json: bool) -> None:
    """List notifications by name, without secrets."""
    _print(ask(database, lambda client: client.notifications.list()), as_json=as_json)


@notification.command("get", epilog=examples("rota notification get ops", "rota notification get ops --json"))
@name
@shared
def get(name: str, database: str | None, as_json: bool) -> None:
    """Show a notification, without its secrets."""

    async def question(client: Client) -> tuple[NotificationView, datetime]:
        return await client.notifications.get(name), await client.time()

    view, now = ask(database, question)
    if as_json:
        print_json(view)
    else:
        print_facts(_facts(view, now))


@notification.command(
    "create",
    epilog=examples(
        "rota notification create ops --to mailto:ops@example.com --job crawl",
        "rota notification create chat --to https://example.com/hook --secret env:HOOK_SECRET --on failure --on missed",
    ),
)
@name
@click.option("--to", required=True, metavar="URL", help="https://…, or mailto:ADDRESS,ADDRESS.")
@click.option("--on", multiple=True, metavar="WORD", help=f"{', '.join(ON)}. Repeatable.  [default: failure]")
@click.option("--job", "jobs", multiple=True, metavar="NAME", help="Only for this job. Repeatable.")
@click.option("--schedule", "schedules", multiple=True, metavar="NAME", help="Only for this schedule. Repeatable.")
@click.option(
    "--secret", metavar="env:NAME|-", help="Signs webhooks: a variable of the sending process, or - for stdin."
)
@click.option("--include-payload", is_flag=True, help="Include the payloads of runs.")
@click.option("--at-most", type=int, metavar="N", help=f"Messages an hour for one job.  [default: {AT_MOST}]")
@shared
def create(name: str, database: str | None, as_json: bool, **options: Any) -> None:
    """Create a notification, of all or of some jobs and schedules."""
    settings = {key: value for key, value in options.items() if value is not None and value != ()}
    if "secret" in settings:
        settings["secret"] = _secret(settings["secret"])

    async def command(client: Client) -> tuple[NotificationView, set[str]]:
        view = await client.notifications.create(name, owner="cli", actor=actor(), **settings)
        return view, set(view.jobs) - {job.name for job in await client.jobs()}

    view, unknown = ask(database, command)
    for job in sorted(unknown):
        click.echo(f"note: there is no job named {job} yet", err=True)
    _print([view], as_json=as_json, single=True)


@notification.command("delete", epilog=examples("rota notification delete ops", "rota notification delete ops --yes"))
@name
@yes_option
@shared
def delete(name: str, yes: bool, database: str | None, as_json: bool) -> None:
    """Delete a notification; messages that wait to be sent are dropped."""
    view = ask(database, lambda client: client.notifications.get(name))
    if not yes:
        require_consent(f"delete notification {name} (to {view.to})?", command=f"rota notification delete {name}")
    ask(database, lambda client: client.notifications.delete(name, actor=actor()))
    if as_json:
        print_deleted(name=name)
        return
    emit(f"deleted {name}" if on_terminal() else name)
    if view.owner == "code":
        click.echo(f"note: {_CODE}", err=True)


@notification.command("test", epilog=examples("rota notification test ops"))
@name
@shared
def send_test(name: str, database: str | None, as_json: bool) -> None:
    """Send a test message now, from this machine.

    A worker on another machine may have other network access, or other secrets.
    """
    answer = ask(database, lambda client: client.notifications.test(name))
    if as_json:
        print_json({"sent": answer})
    else:
        emit(f"sent {name}" if on_terminal() else name)


def _secret(source: str) -> str:
    """Read the secret. It is never an argument, which every process of the machine could read."""
    if source == "-":
        return sys.stdin.readline().rstrip("\n")
    if not source.startswith(ENV):
        raise Invalid(
            "--secret does not take the secret itself: others could read it", hint="use env:NAME, or - for stdin"
        )
    if source.removeprefix(ENV) not in os.environ:
        click.echo(f"note: {source.removeprefix(ENV)} is not set here; the sending process needs it", err=True)
    return source


def _print(views: Sequence[NotificationView], *, as_json: bool, single: bool = False) -> None:
    if as_json:
        print_json(views[0] if single else {"items": views, "next_cursor": None})
    else:
        print_rows(_COLUMNS, [_row(view) for view in views], none=_NONE)


def _row(view: NotificationView) -> list[Cell]:
    state = Cell("enabled", "● enabled", "green") if view.enabled else Cell("disabled", "○ disabled", "yellow")
    return [text_cell(view.name), state, text_cell(", ".join(view.on)), text_cell(view.to), text_cell(_of(view))]


def _of(view: NotificationView) -> str:
    named = [*(f"job {job}" for job in view.jobs), *(f"schedule {schedule}" for schedule in view.schedules)]
    return ", ".join(named) or "everything"


def _facts(view: NotificationView, now: datetime) -> list[tuple[str, Cell]]:
    return [
        *zip(_COLUMNS.titles, _row(view), strict=True),
        ("secret", text_cell(view.secret)),
        ("include_payload", text_cell("yes" if view.include_payload else "no")),
        ("at_most", text_cell(f"{view.at_most} an hour for one job")),
        ("owner", text_cell(view.owner)),
        ("created_at", instant_cell(view.created_at, now)),
        ("updated_at", instant_cell(view.updated_at, now)),
    ]
