"""`rota schedule plan|apply`: compare a file of schedules with the database, and apply it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from rota.cli.connect import actor, ask
from rota.cli.options import examples, shared
from rota.cli.schedules.update import dates
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.format import Columns, text_cell, visible
from rota.cli.terminal.output import coloured, emit, json_text, on_terminal, print_json, print_rows
from rota.core.schedules.diff import CHANGE, CREATE, DELETE, UNCHANGED, Difference, File, read_file
from rota.errors import Invalid

_COLUMNS = Columns(("action", "name", "fields"), cut=("name", "fields"))
_SYMBOLS = {CREATE: ("+", "green"), CHANGE: ("~", "yellow"), DELETE: ("-", "red"), UNCHANGED: (" ", "")}
_DONE = {CREATE: "created", CHANGE: "changed", DELETE: "deleted", UNCHANGED: "unchanged"}
_WOULD_CHANGE, _NAMED = 3, 10
_owner = click.option(
    "--owner", metavar="NAME", help="Owner of the schedules, instead of the file's `owner`.  [default: file:NAME]"
)


@click.command(epilog=examples("rota schedule plan schedules.toml", "rota schedule plan schedules.toml --exit-code"))
@click.argument("file", metavar="FILE | -")
@_owner
@click.option("--exit-code", is_flag=True, help="Exit with 3 if something would change.")
@shared
def plan(file: str, owner: str | None, exit_code: bool, database: str | None, as_json: bool) -> int:
    """Show what `rota schedule apply FILE` would change.

    It lists schedules to create, change and delete, field by field, and their next plan times before and after.
    """
    content = read_schedules(file)
    owned_by = owner or owner_of(content, file)
    differences = _planned(content.documents, owned_by, database)
    problems = [problem for difference in differences for problem in difference.problems]
    for problem in problems[1:]:
        click.echo(f"error: {problem.detail}", err=True)
    if problems:
        raise Invalid(problems[0].detail, hint=problems[0].hint)
    print_differences(differences, owned_by, as_json=as_json, applied=False)
    return _WOULD_CHANGE if exit_code and any(difference.kind != UNCHANGED for difference in differences) else 0


@click.command(
    epilog=examples(
        "rota schedule apply schedules.toml",
        "rota import crontab /etc/crontab --system | rota schedule apply - --owner crontab",
    )
)
@click.argument("file", metavar="FILE | -")
@_owner
@yes_option
@shared
def apply(file: str, owner: str | None, yes: bool, database: str | None, as_json: bool) -> None:
    """Create, change and delete schedules so that they match FILE.

    Schedules that the file no longer contains are deleted; it asks first, unless the file or --owner names their owner.
    Schedules of other owners are never changed. Paused schedules stay paused. Words of other schedulers, such as
    cron_expr, are translated: docs/coming-from/vocabularies.md lists them.
    """
    content = read_schedules(file)
    owned_by = owner or owner_of(content, file)
    if not yes and owner is None and content.owner is None:
        require_deletions(content.documents, owned_by, database, command=f"rota schedule apply {file}")
    apply_file(content.documents, owned_by, database, as_json=as_json)


def _planned(documents: Sequence[dict[str, object]], owner: str, database: str | None) -> Sequence[Difference]:
    """Ask what documents would change, without a simulation."""
    report = ask(
        database, lambda client: client.schedules.simulate(documents=documents, owner=owner, span="0s", limit=1)
    )
    return report.schedules


def require_deletions(
    documents: Sequence[dict[str, object]], owner: str, database: str | None, *, command: str
) -> None:
    """Ask before deletions: the default owner is the file's name, and another file may have the same name."""
    deleted = [each.name for each in _planned(documents, owner, database) if each.kind == DELETE]
    if deleted:
        named = ", ".join(deleted[:_NAMED]) + (f" and {len(deleted) - _NAMED} more" if len(deleted) > _NAMED else "")
        otherwise = 'with `owner = "…"` in the file, or --owner, this question is not asked'
        require_consent(f"delete {visible(named)} of owner {visible(owner)}?", command=command, otherwise=otherwise)


def apply_file(documents: Sequence[dict[str, object]], owner: str, database: str | None, *, as_json: bool) -> None:
    differences = ask(database, lambda client: client.schedules.apply_documents(documents, owner, actor=actor()))
    print_differences(differences, owner, as_json=as_json, applied=True)


def read_schedules(file: str) -> File:
    return read_file(read_text(file), "schedules.toml" if file == "-" else Path(file).name)


def read_text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Invalid(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Invalid(f"{file} is not UTF-8: {error.reason} at byte {error.start}") from None


def owner_of(content: File, file: str) -> str:
    if content.owner is None and file == "-":
        raise Invalid("schedules from stdin need an owner", hint="give --owner, or `owner = …` in the file")
    return file_owner(file) if content.owner is None else content.owner


def file_owner(file: str) -> str:
    return f"file:{Path(file).name}"


def print_differences(differences: Sequence[Difference], owner: str, *, as_json: bool, applied: bool) -> None:
    if as_json:
        counts = Counter(difference.kind for difference in differences)
        facts = {kind: counts[kind] for kind in (CREATE, CHANGE, DELETE, UNCHANGED)}
        print_json({"owner": owner, "applied": applied, "counts": facts, "items": differences})
    elif on_terminal():
        _print_for_people(differences, owner, applied=applied)
    else:
        rows = [
            [
                text_cell(difference.kind),
                text_cell(difference.name),
                text_cell(",".join(c.key for c in difference.changes)),
            ]
            for difference in differences
        ]
        print_rows(_COLUMNS, rows, none="")


def _print_for_people(differences: Sequence[Difference], owner: str, *, applied: bool) -> None:
    for difference in differences:
        if difference.kind != UNCHANGED:
            _print_difference(difference)
    counts = Counter(difference.kind for difference in differences)
    words = _DONE if applied else {kind: f"to {kind}" for kind in _DONE} | {UNCHANGED: "unchanged"}
    summary = ", ".join(f"{counts[kind]} {words[kind]}" for kind in _DONE if counts[kind])
    emit(f"{summary or 'no schedules'}; owner {visible(owner)}")


def _print_difference(difference: Difference) -> None:
    symbol, colour = _SYMBOLS[difference.kind]
    head = f"{symbol} {visible(difference.name)}" + ("  (stays paused)" if difference.paused else "")
    emit(coloured(head, colour))
    for change in difference.changes:
        before = "" if difference.kind == CREATE else f"{_written(change.before)} → "
        emit(visible(f"    {change.key}: {before}{_written(change.after)}"))
    if difference.fires_before != difference.fires_after:
        before = "" if difference.kind == CREATE else f"{dates(difference.fires_before)} → "
        emit(f"    next: {before}{dates(difference.fires_after)}")


def _written(value: object) -> str:
    return "—" if value is None else value if isinstance(value, str) else json_text(value)


COMMANDS = (plan, apply)
