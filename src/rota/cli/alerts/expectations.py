"""`rota expectation`: expectations of jobs and schedules, and their breaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import click

from rota.cli.options import Group, examples
from rota.cli.terminal.cells import row_of
from rota.cli.terminal.expectation_format import breaches_text, expectations_text
from rota.cli.terminal.format import Cell, Columns
from rota.cli.verbs.looks import Reply, sentence, table
from rota.cli.verbs.verb_command import verb_command
from rota.cli.verbs.verb_options import Form
from rota.client.alerts.expectations import ExpectationsClient
from rota.core.alerts.expectations import Expected
from rota.errors import Invalid

_COLUMNS = Columns(
    ("kind", "name", "state", "expected", "owner", "since", "breaches"),
    cut=("name", "expected"),
    wide=("expected",),
    spare=("since", "owner"),
    below=("breaches",),
)
_STATES = {"met": ("✓", "green"), "breached": ("✗", "red"), "resting": ("⏸", "yellow")}


@click.group(
    cls=Group,
    epilog=examples(
        "rota expectation update --job crawl --start-within 5m",
        "rota expectation list --breached    exit code 1 if there is a breach",
    ),
)
def expectation() -> None:
    """List, set and delete expectations of jobs and schedules."""


def _subject() -> Form:
    """Return the form of `kind` and `name`: --job or --schedule."""

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        names = {kind: values[kind] for kind in ("job", "schedule") if values[kind] is not None}
        if len(names) != 1:
            raise Invalid("give --job or --schedule, one of them")
        [(kind, name)] = names.items()
        return {"kind": kind, "name": name}

    def write(values: Sequence[Any]) -> Sequence[Any]:
        kind, name = values
        names = {kind: name}
        return [names.get("job"), names.get("schedule")]

    of_job = click.Option(["--job"], metavar="NAME", help="Expectations of this job.")
    of_schedule = "Expectations of this schedule; only its own runs count."
    return Form(("kind", "name"), [of_job, click.Option(["--schedule"], metavar="NAME", help=of_schedule)], read, write)


def state_of(expected: Expected) -> str:
    if expected.resting:
        return "resting"
    return "breached" if expected.breaches else "met"


def _state_cell(expected: Expected, _: datetime) -> Cell:
    state = state_of(expected)
    symbol, colour = _STATES[state]
    return Cell(state, f"{symbol} {state}", colour)


_row = row_of(
    _COLUMNS,
    name="subject",
    state=_state_cell,
    expected=lambda expected, _: expectations_text(expected),
    breaches=lambda expected, now: Cell(breaches_text(expected, now), style="red"),
)


def _list(reply: Reply) -> None:
    none = "no expectations: set one with `rota expectation update --job NAME …`"
    table(_COLUMNS, _row, "no breaches" if reply.typed["breached"] else none)(reply)


_command = partial(verb_command, "expectations")
_of_subject = partial(_command, forms=(_subject,))
_RATE = {"metavar": "RATE", "type": str}

for command in (
    _command(
        ExpectationsClient.list,
        _list,
        "rota expectation list",
        "rota expectation list --breached || echo 'something is late'",
        code=lambda reply: int(bool(reply.typed["breached"] and reply.value)),
        settings={"breached": {"help": "Only breached ones; the exit code is 1 if there are any."}},
    ),
    _of_subject(ExpectationsClient.get, table(_COLUMNS, _row), "rota expectation get --job crawl"),
    _of_subject(
        ExpectationsClient.update,
        table(_COLUMNS, _row),
        "rota expectation update --job crawl --start-within 5m --max-failures 3",
        "rota expectation update --schedule nightly --finish-within 2h --success-every 25h",
        "rota expectation update --job crawl --min-success-rate 95% --over 50",
        "rota expectation update --job crawl --max-failures none",
        settings={"max_consecutive_failures": {"names": ("--max-failures",)}, "min_success_rate": _RATE},
    ),
    _of_subject(
        ExpectationsClient.delete,
        sentence("the expectations of {kind} {name} are deleted"),
        "rota expectation delete --job crawl",
    ),
):
    expectation.add_command(command)
