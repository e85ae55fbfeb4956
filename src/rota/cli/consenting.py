"""Asking before something that cannot be undone: on a terminal only, else `--yes` is wanted."""

from __future__ import annotations

import sys

import click

from rota.errors import Invalid

yes_option = click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal to ask on.")


def require_consent(question: str, *, command: str) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Invalid("there is no terminal to ask on", hint=f"`{command} --yes` does not ask")
    click.confirm(question, abort=True, err=True)
