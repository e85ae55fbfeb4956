"""Options that select runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rota.cli.options import instant_of, names_of, scope_of, states_of
from rota.core.runs.run import RunFilter
from rota.errors import Invalid
from rota.values.scope import Scope

F = TypeVar("F", bound=Callable[..., Any])


def value_of(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise Invalid(f"{text!r:.80} is not a value of a payload", hint="write NAME=VALUE, for example url=https://…")
    return name, value


_OPTIONS = (
    click.option(
        "--state", "states", type=names_of, multiple=True, metavar="STATE", help="In these states; comma-separated."
    ),
    click.option("--job", metavar="NAME", help="Of this job."),
    click.option("--queue", metavar="NAME", help="In this queue."),
    click.option("--schedule", metavar="NAME", help="Created by this schedule."),
    click.option("--tag", metavar="TAG", help="With this tag."),
    click.option("--key", metavar="KEY", help="With this key."),
    click.option("--scope", type=scope_of, metavar="KIND/ID", help="Of this scope."),
    click.option(
        "--worker", metavar="ID|NAME", help="Whose last attempt was on this worker, or on any with this name."
    ),
    click.option("--parent", metavar="ID", help="Replicas of this run."),
    click.option("--error", metavar="TEXT", help="Whose error contains this text, as `Type: message`."),
    click.option("--fingerprint", metavar="HEX", help="Whose error has this fingerprint."),
    click.option(
        "--payload",
        type=value_of,
        multiple=True,
        metavar="NAME=VALUE",
        help="Whose payload has this value: url=https://…, a.b=5.",
    ),
    click.option("--created-after", type=instant_of, metavar="TIME", help="Created at this time or later."),
    click.option("--created-before", type=instant_of, metavar="TIME", help="Created before this time."),
    click.option("--retried/--not-retried", default=None, help="That were retried, or were not."),
)


def filters(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def filter_of(options: dict[str, Any]) -> RunFilter:
    """Build a filter from the values of the options that `filters` adds, and no others."""
    scope = None if options["scope"] is None else Scope(*options["scope"])
    payload = dict(options["payload"])
    if len(payload) < len(options["payload"]):
        raise Invalid("--payload has two values for the same name")
    return RunFilter(**{**options, "states": states_of(options["states"]), "scope": scope, "payload": payload})
