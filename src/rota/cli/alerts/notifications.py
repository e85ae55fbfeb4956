"""`rota notification`: list, create, delete and test notifications."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from functools import partial

import click

from rota.cli.options import Group, examples
from rota.cli.terminal.cells import facts_of, row_of
from rota.cli.terminal.format import Cell, Columns
from rota.cli.verbs.looks import Reply, facts, sentence, table
from rota.cli.verbs.verb_command import Consent, verb_command
from rota.cli.verbs.verb_options import Settings
from rota.client.alerts.notifications import NotificationsClient
from rota.client.client import Client
from rota.core.alerts.notifications import ENV, ON, NotificationView
from rota.errors import Invalid

_COLUMNS = Columns(("name", "state", "on", "to", "of"), cut=("to", "of"))
_CODE = "it is declared in code, and comes back at the next start unless it is removed there"
_NONE = "no notifications: create one with `rota notification create`, or app.notify(…) in code"


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


def _secret(source: str) -> str:
    """Read the secret. It is never an argument, which every process of the machine could read."""
    if source == "-":
        return sys.stdin.readline().rstrip("\n")
    if not source.startswith(ENV):
        raise Invalid(
            "--secret does not take the secret itself: others could read it", hint="use env:NAME, or - for stdin"
        )
    return source


_SETTINGS: Settings = {
    "to": {"metavar": "URL", "help": "https://…, or mailto:ADDRESS,ADDRESS."},
    "on": {"metavar": "WORD", "help": f"{', '.join(ON)}. Repeatable.  [default: failure]"},
    "jobs": {"names": ("--job",), "metavar": "NAME", "help": "Only for this job. Repeatable."},
    "schedules": {"names": ("--schedule",), "metavar": "NAME", "help": "Only for this schedule. Repeatable."},
    "secret": {
        "type": _secret,
        "metavar": "env:NAME|-",
        "help": "Signs webhooks: a variable of the sending process, or - for stdin.",
    },
    "enabled": {"names": ("--enabled/--disabled",), "help": "Send it, or do not."},
    "owner": {"default": "cli", "show_default": True},
}


def _of(view: NotificationView, _: datetime) -> str:
    named = [*(f"job {job}" for job in view.jobs), *(f"schedule {schedule}" for schedule in view.schedules)]
    return ", ".join(named) or "everything"


def _state(view: NotificationView, _: datetime) -> Cell:
    return Cell("enabled", "● enabled", "green") if view.enabled else Cell("disabled", "○ disabled", "yellow")


_row = row_of(_COLUMNS, state=_state, of=_of)
_facts = facts_of(
    "name state on to of secret include_payload at_most owner created_at updated_at",
    state=_state,
    of=_of,
    at_most=lambda view, _: f"{view.at_most} an hour for one job",
)


def _created(reply: Reply) -> None:
    for job in sorted(set(reply.value.jobs) - reply.also):
        click.echo(f"note: there is no job named {job} yet", err=True)
    secret = reply.typed["secret"] or ""
    variable = secret.removeprefix(ENV)
    if secret != variable and variable not in os.environ:
        click.echo(f"note: {variable} is not set here; the sending process needs it", err=True)
    _table(reply)


async def _known_jobs(client: Client, view: NotificationView, _: object) -> set[str]:
    return {job for job in view.jobs if await client.jobs(name=job, limit=1)}


def _deleted(reply: Reply) -> None:
    sentence("notification {name} is deleted")(reply)
    if reply.before.owner == "code":
        click.echo(f"note: {_CODE}", err=True)


_table = table(_COLUMNS, _row, _NONE)
_deletion = Consent(
    lambda client, arguments: client.notifications.get(arguments["name"]),
    lambda view, _: f"delete notification {view.name} (to {view.to})?",
)
_command = partial(verb_command, "notifications", settings=_SETTINGS)

for command in (
    _command(NotificationsClient.list, _table, "rota notification list", "rota notification list --json"),
    _command(NotificationsClient.get, facts(_facts), "rota notification get ops", "rota notification get ops --json"),
    _command(
        NotificationsClient.create,
        _created,
        "rota notification create ops --to mailto:ops@example.com --job crawl",
        "rota notification create chat --to https://example.com/hook --secret env:HOOK_SECRET --on failure --on missed",
        words="Create a notification, of all or of some jobs and schedules.",
        also=_known_jobs,
    ),
    _command(
        NotificationsClient.update,
        _table,
        "rota notification update ops --on failure --on missed",
        "rota notification update ops --disabled",
    ),
    _command(
        NotificationsClient.delete,
        _deleted,
        "rota notification delete ops",
        "rota notification delete ops --yes",
        consent=_deletion,
    ),
    _command(NotificationsClient.test, sentence("a test message is sent to {name}"), "rota notification test ops"),
):
    notification.add_command(command)
