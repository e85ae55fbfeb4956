"""The options that say which runs are meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rota.cli.options import instant_of, names_of, scope_of, states_of
from rota.core.model import RunFilter
from rota.core.scope import Scope

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--state", "states", type=names_of, multiple=True, metavar="STATE", help="Only these; comma-separated."
    ),
    click.option("--job", metavar="NAME"),
    click.option("--queue", metavar="NAME"),
    click.option("--schedule", metavar="NAME"),
    click.option("--tag", metavar="TAG"),
    click.option("--key", metavar="KEY"),
    click.option("--scope", type=scope_of, metavar="KIND/ID"),
    click.option("--worker", metavar="ID|NAME", help="That runs them, or ran them last; or all of that name."),
    click.option("--parent", metavar="ID", help="The replicas of this run."),
    click.option("--error", metavar="TEXT", help="Whose error says this, as a part of `Type: message`."),
    click.option("--created-after", type=instant_of, metavar="TIME", help="At that time or later."),
    click.option("--created-before", type=instant_of, metavar="TIME"),
    click.option("--retried/--not-retried", default=None, help="Whether another run repeats them."),
)


def filters(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def filter_of(given: dict[str, Any]) -> RunFilter:
    """`given`: what the options of `filters` were given, and nothing else."""
    scope = given["scope"]
    return RunFilter(
        **{**given, "states": states_of(given["states"]), "scope": None if scope is None else Scope(*scope)}
    )
