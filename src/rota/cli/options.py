"""Options that commands share, parsers of their values, and the class of command groups."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from rota.config import LOG_FORMATS
from rota.core.states import RunState
from rota.errors import Invalid, did_you_mean
from rota.values.scope import scope_parts

F = TypeVar("F", bound=Callable[..., Any])

SHORT_FORMS = {"ls": "list", "rm": "delete"}
"""Short forms of commands. Python and REST have the long forms only."""
_SYNONYMS = {
    "add": ("create", "enqueue"),
    "new": ("create", "enqueue"),
    "show": ("get",),
    "edit": ("update",),
    "change": ("update",),
    "set": ("update",),
    "remove": ("delete", "revoke"),
    "drop": ("delete", "revoke"),
    "notify": ("notification",),
}
"""Words that other command lines use, and the commands to suggest for them, as far as a group has them."""


class UnknownCommand(click.UsageError):
    """No command of the group has this name. `possibilities` are commands with a similar name or meaning."""

    def __init__(self, name: str, possibilities: list[str], ctx: click.Context) -> None:
        super().__init__(f"no such command {name!r}", ctx)
        self.possibilities = possibilities


class Group(click.Group):
    """A group of commands in which `ls` is short for `list`, and `rm` for `delete`.

    Help and shell completion show the long forms.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, SHORT_FORMS.get(cmd_name, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word, *rest = args
        name = SHORT_FORMS.get(word, word)
        if name in self.commands or ctx.resilient_parsing or word.startswith("-"):
            return super().resolve_command(ctx, [name, *rest])
        raise UnknownCommand(word, self._possibilities(word, ctx.find_root().command), ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_commands(ctx, formatter)
        if self._short_forms():
            forms = ", ".join(f"{short} for {SHORT_FORMS[short]}" for short in self._short_forms())
            formatter.write_paragraph()
            formatter.write_text(f"Short forms: {forms}.")

    def _short_forms(self) -> list[str]:
        return [short for short, name in SHORT_FORMS.items() if name in self.commands]

    def _possibilities(self, word: str, program: click.Command) -> list[str]:
        synonyms = [name for name in _SYNONYMS.get(word, ()) if name in self.commands]
        if not synonyms and isinstance(program, Group) and word in program.commands:
            return [f"{program.name} {word}"]
        return synonyms or difflib.get_close_matches(word, [*self.commands, *self._short_forms()])


def examples(*lines: str) -> str:
    """Format the examples at the end of a command's help, which click must not wrap."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


idempotency_option = click.option(
    "--idempotency-key", metavar="KEY", help="A repeated command with this key changes nothing more."
)


def params_of(decorate: Callable[[Any], Any]) -> list[click.Parameter]:
    """Return the options that a decorator adds, in the order of help."""

    def command() -> None: ...

    params: list[click.Parameter] = decorate(command).__click_params__
    return params[::-1]


def shared(command: F) -> F:
    """Add --database and --json, which every command takes."""
    return _database(click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command))


def streaming(command: F) -> F:
    """Add --database and --json to a command that prints a JSON document per line as things happen."""
    return _database(click.option("--json", "as_json", is_flag=True, help="Print a JSON document per line.")(command))


def _database(command: F) -> F:
    return click.option("--database", metavar="URL", help="sqlite:///FILE or postgresql://USER@HOST/NAME.")(command)


def server_options(command: F) -> F:
    """Add the options of commands that keep running: --database, --json, --log-level and --log-format."""
    level = click.Choice(["debug", "info", "warning", "error"], case_sensitive=False)
    log_level = click.option(
        "--log-level", type=level, default="info", show_default=True, help="Log messages of this level and above."
    )
    ready = click.option("--json", "as_json", is_flag=True, help="Print one JSON document when it is ready.")
    forms = click.Choice(LOG_FORMATS)
    form = click.option("--log-format", type=forms, help="Format of log messages.  [default: text]")
    return _database(ready(log_level(form(command))))


concurrency = click.option("--concurrency", type=int, metavar="N", help="Runs at a time.  [default: 10]")


def names_of(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise Invalid(f"{text!r} contains an empty name", hint="separate names with single commas")
    return names


def queues_of(text: str) -> dict[str, int]:
    """Parse `critical:4,default`: a queue's weight follows its last colon, and is 1 without one."""
    return dict(_queue_weight(name) for name in names_of(text))


def _queue_weight(text: str) -> tuple[str, int]:
    name, colon, weight = text.rpartition(":")
    if colon and name and weight.isascii() and weight.isdigit():
        return name, int(weight[:9])
    return text, 1


def scope_of(text: str) -> tuple[str, str]:
    kind, id = scope_parts(text)
    if not kind or not id:
        raise Invalid(f"{text!r} is not a scope", hint="write KIND/ID, for example account/42")
    return kind, id


def instant_of(text: str) -> datetime:
    """Parse a time. A zone is required: a local time would mean something else on every machine."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text!r} is not a time", hint="write 2026-01-31T08:00:00Z") from None
    if at.tzinfo is None:
        raise Invalid(f"{text!r} has no time zone", hint="end it with Z or with an offset such as +02:00")
    return at


def states_of(options: tuple[tuple[str, ...], ...]) -> tuple[RunState, ...]:
    """Parse the values of repeated options such as `--state failed,expired --state queued`."""
    words = [word for names in options for word in names]
    states = [state.value for state in RunState]
    for word in words:
        if word not in states:
            raise Invalid(
                f"there is no state {word!r}", hint=did_you_mean(word, states) or f"known: {', '.join(states)}"
            )
    return tuple(RunState(word) for word in words)
