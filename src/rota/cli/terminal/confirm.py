"""Confirmation of commands that cannot be undone. Without a terminal, `--yes` is required."""

from __future__ import annotations

import sys

import click

from rota.errors import Invalid

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation. Required without a terminal.")


class Declined(Exception):
    """The answer was no: neither an error nor success."""

    exit_code = 3


def require_consent(question: str, *, command: str, otherwise: str = "") -> None:
    """Ask, and raise `Declined` if the answer is no. `otherwise` is a hint at another way than to answer yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        hint = f"`{command} --yes` does not ask" + (f"; {otherwise}" if otherwise else "")
        raise Invalid(f"{question.rstrip('?')}: there is no terminal to ask on", hint=hint)
    if otherwise:
        click.echo(f"note: {otherwise}", err=True)
    if not click.confirm(question, err=True):
        raise Declined
