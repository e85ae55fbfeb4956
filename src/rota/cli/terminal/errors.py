"""Errors on stderr, as text for people or as JSON for programs."""

from __future__ import annotations

import json

import click
import msgspec

from rota.cli.terminal.format import visible
from rota.errors import RotaError, StillRunning

_OF_COMMANDS = ("--database", "--json")  # every command takes them, no group of commands does


class Problem(msgspec.Struct, frozen=True):
    code: str
    detail: str
    exit_code: int
    hint: str | None = None
    status: int | None = None
    field: str | None = None

    def document(self) -> dict[str, object]:
        """Return the problem as the API answers it (RFC 9457), with the exit code."""
        facts = {"type": f"urn:rota:problem:{self.code}", **msgspec.to_builtins(self)}
        return {name: fact for name, fact in facts.items() if fact is not None}


def problem_of(error: RotaError | click.ClickException) -> Problem:
    if isinstance(error, RotaError):
        # A wait that timed out is no answer of a server, so it has no HTTP status.
        status = None if isinstance(error, StillRunning) else error.status
        return Problem(error.code, error.message, error.exit_code, error.hint, status, getattr(error, "field", None))
    near: list[str] = list(getattr(error, "possibilities", None) or ())
    # Newer versions of click append their suggestions to the formatted message; here they are the hint.
    detail = error.message if near else error.format_message()
    return Problem("usage", detail[:1].lower() + detail[1:].rstrip("."), error.exit_code, _usage_hint(error, near))


def _usage_hint(error: click.ClickException, near: list[str]) -> str | None:
    context = error.ctx if isinstance(error, click.UsageError) else None
    is_group = context is not None and isinstance(context.command, click.Group)
    if is_group and isinstance(error, click.NoSuchOption) and error.option_name in _OF_COMMANDS:
        return f"put it after the command: rota run list {error.option_name}"
    if near:
        return f"did you mean {near[0]}?"
    return f"see `{context.command_path} --help`" if context else None


def show_problem(problem: Problem, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(problem.document(), ensure_ascii=False), err=True)
        return
    click.echo(f"error: {visible(problem.detail)}", err=True)
    if problem.hint:
        click.echo(f"hint: {visible(problem.hint)}", err=True)
