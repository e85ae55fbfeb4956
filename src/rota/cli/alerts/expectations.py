"""`rota expectation`: expectations of jobs and schedules, and their breaches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from rota.cli.connect import actor, ask
from rota.cli.options import Group, examples, shared
from rota.cli.terminal.expectation_format import breaches_text, expectations_text
from rota.cli.terminal.format import Cell, Columns, age_cell, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_deleted, print_json, print_rows
from rota.client.client import Client
from rota.core.alerts.expectations import Expected
from rota.errors import Invalid

F = TypeVar("F", bound=Callable[..., Any])

_COLUMNS = Columns(
    ("kind", "name", "state", "expected", "owner", "since", "breaches"),
    cut=("name", "expected"),
    wide=("expected",),
    spare=("since", "owner"),
    below=("breaches",),
)
_STATES = {"met": ("✓", "green"), "breached": ("✗", "red"), "resting": ("⏸", "yellow")}
_NONE = "none"


def _subject_options(command: F) -> F:
    of_job = click.option("--job", metavar="NAME", help="Expectations of this job.")
    return of_job(
        click.option("--schedule", metavar="NAME", help="Expectations of this schedule; only its own runs count.")(
            command
        )
    )


@click.group(
    cls=Group,
    epilog=examples(
        "rota expectation update --job crawl --start-within 5m",
        "rota expectation list --breached    exit code 1 if there is a breach",
    ),
)
def expectation() -> None:
    """List, set and delete expectations of jobs and schedules."""


@expectation.command(
    "list", epilog=examples("rota expectation list", "rota expectation list --breached || echo 'something is late'")
)
@click.option("--breached", is_flag=True, help="Only breached ones; the exit code is 1 if there are any.")
@shared
def list_expectations(breached: bool, database: str | None, as_json: bool) -> int:
    """List expectations, and since when which of them are breached."""

    async def question(client: Client) -> Any:
        return await client.expectations.list(breached=breached), await client.time()

    expectations, now = ask(database, question)
    if as_json:
        print_json({"items": expectations, "next_cursor": None})
    else:
        none = "no breaches" if breached else "no expectations: set one with `rota expectation update --job NAME …`"
        print_rows(_COLUMNS, [_row(expected, now) for expected in expectations], none=none)
    return int(breached and bool(expectations))


@expectation.command(
    "update",
    epilog=examples(
        "rota expectation update --job crawl --start-within 5m --max-failures 3",
        "rota expectation update --schedule nightly --finish-within 2h --success-every 25h",
        "rota expectation update --job crawl --min-success-rate 95% --over 50",
        "rota expectation update --job crawl --max-failures none",
    ),
)
@_subject_options
@click.option("--start-within", metavar="DURATION", help="A run starts at most this long after it is due.")
@click.option("--finish-within", metavar="DURATION", help="A run ends at most this long after it is due.")
@click.option("--success-every", metavar="DURATION", help="A run succeeds at least this often.")
@click.option("--max-duration", metavar="DURATION", help="An attempt takes at most this long.")
@click.option("--max-failures", "max_consecutive_failures", metavar="N", help="At most this many runs fail in a row.")
@click.option("--min-success-rate", metavar="RATE", help="At least this share of the last runs succeeds: 0.95 or 95%.")
@click.option("--over", metavar="N", help="Number of last runs for the rate.  [default: 20]")
@click.option("--at-least", metavar="N", help="Minimum of ended runs before the rate counts.  [default: 5]")
@shared
def set_expectations(
    job: str | None, schedule: str | None, database: str | None, as_json: bool, **options: str | None
) -> None:
    """Set expectations of a job or a schedule.

    Options that are not given stay as they are; `none` removes one. From then on, declarations in code do not change
    them.
    """
    kind, name = _subject(job, schedule)
    changes = {option: _value(option, text) for option, text in options.items() if text is not None}
    if not changes:
        raise Invalid("nothing to change", hint="give an expectation, such as --start-within 5m")

    async def command(client: Client) -> Any:
        return await client.expectations.update(kind, name, actor=actor(), **changes), await client.time()

    expected, now = ask(database, command)
    if as_json:
        print_json(expected)
    else:
        print_rows(_COLUMNS, [_row(expected, now)], none="")


@expectation.command("delete", epilog=examples("rota expectation delete --job crawl"))
@_subject_options
@shared
def delete_expectations(job: str | None, schedule: str | None, database: str | None, as_json: bool) -> None:
    """Delete the expectations of a job or a schedule.

    Their breaches end. Expectations that code declares come back when the declaration changes.
    """
    kind, name = _subject(job, schedule)
    ask(database, lambda client: client.expectations.delete(kind, name, actor=actor()))
    if as_json:
        print_deleted(kind=kind, name=name)
    elif on_terminal():
        emit(f"deleted the expectations of {kind} {name}")


def _subject(job: str | None, schedule: str | None) -> tuple[str, str]:
    if (job is None) == (schedule is None):
        raise Invalid("give --job or --schedule, one of them")
    return ("job", job) if job is not None else ("schedule", str(schedule))


def _value(option: str, text: str) -> Any:
    if text == _NONE:
        return None
    if option in ("max_consecutive_failures", "over", "at_least") and text.isascii() and text.isdigit():
        return int(text[:9])
    return text


def state_of(expected: Expected) -> str:
    if expected.resting:
        return "resting"
    return "breached" if expected.breaches else "met"


def _row(expected: Expected, now: datetime) -> list[Cell]:
    state = state_of(expected)
    symbol, colour = _STATES[state]
    return [
        text_cell(expected.kind),
        text_cell(expected.subject),
        Cell(state, f"{symbol} {state}", colour),
        text_cell(expectations_text(expected)),
        text_cell(expected.owner),
        age_cell(expected.since, now),
        Cell(breaches_text(expected, now), style="red"),
    ]
