"""Options that define a schedule, and their conversion to a document."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from rota.core.calendar.triggers import KINDS
from rota.core.limits.limits import WHEN_FULL
from rota.core.schedules.documents import KEYS
from rota.core.schedules.policies import CATCH_UP, FAILURE, OVERLAP
from rota.errors import Invalid, UnknownOption

F = TypeVar("F", bound=Callable[..., Any])

_LISTS = {"window": "windows", "exclude": "exclude", "scope": "scopes", "tag": "tags"}
_SETTABLE = tuple(key for key in KEYS if key not in ("name", "job"))


def trigger_options(command: F) -> F:
    return _options(
        command,
        *(
            click.option(f"--{option.key}", metavar=option.metavar, help=option.help)
            for kind in KINDS
            for option in kind.options
        ),
        click.option(
            "--timezone", "--tz", metavar="ZONE", help="Time zone of --cron, --window and --exclude.  [default: UTC]"
        ),
    )


def policy_options(command: F) -> F:
    return _options(
        command,
        click.option("--overlap", metavar="MODE", help=f"While a run is live: {_any(OVERLAP)}.  [default: skip]"),
        click.option("--catch-up", metavar="MODE", help=f"After downtime: {_any(CATCH_UP)}.  [default: latest]"),
        click.option("--failure", metavar="MODE", help=f"After a failed run: {_any(FAILURE)}.  [default: run_new]"),
        click.option("--max-concurrency", type=int, metavar="N", help="Runs of this schedule at a time."),
        click.option("--when-full", metavar="WORD", help=f"At the limit: {_any(WHEN_FULL)}.  [default: queue]"),
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=JSON",
            help="Any other key, or a policy with all of its fields; null restores the default. Repeatable.",
        ),
    )  # fmt: skip


def definition_options(command: F) -> F:
    return _options(
        command,
        trigger_options,
        click.option(
            "--window", multiple=True, metavar="WINDOW", help='Only within: "09:00-17:00 mon-fri". Repeatable.'
        ),
        click.option("--exclude", multiple=True, metavar="DATE", help="Not on 2026-12-25, or FROM/TO. Repeatable."),
        click.option("--delay", metavar="DURATION", help="Runs start this long after their plan time."),
        click.option("--jitter", metavar="DURATION", help="Runs start up to this much later, at random."),
        click.option("--max-runs", type=int, metavar="N", help="End the schedule after N plan times."),
        click.option("--start-at", metavar="TIME", help="No plan time before."),
        click.option("--end-at", metavar="TIME", help="No plan time after."),
        click.option("--scope", multiple=True, metavar="KIND/ID", help="A run for each of these. Repeatable."),
        click.option("--scopes", metavar="PROVIDER", help="A run for each scope that this provider names."),
        policy_options,
        click.option("--tag", multiple=True, metavar="TAG", help="Tag of the runs. Repeatable."),
        click.option("--description", metavar="TEXT", help="Description for people."),
    )


def _options(command: F, *decorators: Callable[[F], F]) -> F:
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def _any(words: tuple[str, ...]) -> str:
    return ", ".join(words)


def document_from(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that were given as a document. The value None restores a default."""
    if options.get("scope") and options.get("scopes"):
        raise Invalid("give --scope or --scopes, not both")
    document: dict[str, Any] = {}
    for option, value in options.items():
        if option != "settings" and value is not None and value != ():
            document[_LISTS.get(option, option)] = list(value) if option in _LISTS else value
    for setting in options.get("settings", ()):
        key, equals, text = setting.partition("=")
        key = key.strip().replace("-", "_")
        if not equals:
            raise Invalid(f"--set {setting!r} has no =", hint="as in --set priority=5")
        if key not in _SETTABLE:
            raise UnknownOption(key, _SETTABLE, where="--set")
        document[key] = _json_or_text(text)
    return document


def _json_or_text(text: str) -> Any:
    """Parse JSON, or return the text, so that `--set queue=mail` needs no quotes inside quotes."""
    try:
        return json.loads(text)
    except ValueError:
        if text.lstrip()[:1] in ("{", "["):
            raise Invalid(f"--set: {text!r:.80} is not JSON", hint="""use single quotes: '{"mode": "all"}'""") from None
        return text
