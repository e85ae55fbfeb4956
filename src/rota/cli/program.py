"""The root command: sections of its help, and how errors are printed and become exit codes."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from rota.cli.command_table import CommandTable
from rota.cli.options import Group
from rota.cli.terminal.confirm import Declined
from rota.cli.terminal.errors import Problem, problem_of, show_problem
from rota.errors import RotaError

_SECTIONS = {
    "Getting started": ("init", "dev"),
    "Servers and workers": ("server", "worker", "mcp"),
    "Monitoring": ("top", "attention", "run", "upcoming", "error-groups", "explain"),
    "Jobs and schedules": ("job", "schedule", "queue", "scope", "quota", "cron", "import"),
    "Workers": ("workers",),
    "Notifications and access": ("expectation", "notification", "token", "audit"),
    "Maintenance": ("migrate", "promote", "database", "doctor", "prune", "purge", "export", "completion"),
}
_OTHER = "Other commands"
_INDENT = 6


def sections_of(names: list[str]) -> dict[str, list[str]]:
    """Group command names by section. Names that have no section come last, as other commands."""
    sections = {title: [name for name in members if name in names] for title, members in _SECTIONS.items()}
    placed = {name for members in sections.values() for name in members}
    sections[_OTHER] = [name for name in names if name not in placed]
    return {title: members for title, members in sections.items() if members}


def write_sections(commands: CommandTable, formatter: click.HelpFormatter) -> None:
    """Write the sections, with all descriptions in the same column."""
    widest = max(len(name) for name in commands)
    width = formatter.width - _INDENT - widest
    for title, names in sections_of(sorted(commands)).items():
        with formatter.section(title):
            rows = [(name.ljust(widest), commands.short_help(name, width)) for name in names]
            formatter.write_dl(rows, col_spacing=2)


_INTERRUPTED = 130


class Program(Group):
    """The root command. A command below it returns its exit code, or None for success."""

    commands: CommandTable

    def main(  # type: ignore[override]  # it always ends the process, or pretends to under click's test runner
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        arguments = list(sys.argv[1:] if args is None else args)
        _escape_unencodable()
        extra["standalone_mode"] = False
        try:
            _require_text(arguments)
            code = super().main(arguments, prog_name or "rota", **extra)
        except click.exceptions.NoArgsIsHelpError as usage:
            usage.show()
            code = usage.exit_code
        except Declined as declined:
            code = declined.exit_code
            _report_declined(code, as_json=_wants_json(arguments))
        except click.Abort as abort:
            code = _INTERRUPTED
            show_problem(Problem("interrupted", str(abort) or "interrupted", code), as_json=_wants_json(arguments))
        except (RotaError, click.ClickException) as error:
            problem = problem_of(error)
            show_problem(problem, as_json=_wants_json(arguments))
            code = problem.exit_code
        sys.exit(code if isinstance(code, int) else 0)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_sections(self.commands, formatter)


def _report_declined(code: int, *, as_json: bool) -> None:
    if as_json:
        show_problem(Problem("declined", "nothing was done", code), as_json=True)
    else:
        click.echo("nothing was done", err=True)


def _require_text(arguments: Sequence[str]) -> None:
    """Refuse bytes that are not UTF-8: they arrive as unpaired surrogates, which no database stores."""
    for word in arguments:
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise click.UsageError(f"{word!a} is not text in this locale's encoding")


def _wants_json(arguments: Sequence[str]) -> bool:
    """Return whether --json is among the raw arguments, because usage errors are printed as JSON, too."""
    before_dashes = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before_dashes


def _escape_unencodable() -> None:
    """Escape characters that the terminal's encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
