"""`rota run events`, `rota schedule events`, `rota audit`: what happened, when, and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from rota.cli.connecting import ask
from rota.cli.options import examples, shared
from rota.cli.output import json_text, on_terminal, print_json, print_rows
from rota.cli.words import Cell, Columns, instant_cell, rfc3339, state_cell, text_cell
from rota.client import MOST_LISTED, Client
from rota.core.events import KINDS, Event
from rota.core.states import RunState

_RUN_COLUMNS = Columns(
    ("at", "event", "from", "to", "fence", "by", "details"),
    cut=("by",),
    spare=("fence", "by"),
    below=("details",),
)
_SCHEDULE_COLUMNS = Columns(("at", "event", "by", "details"), cut=("by",), below=("details",))
_AUDIT_COLUMNS = Columns(
    ("seq", "at", "kind", "subject", "event", "by", "details"),
    cut=("subject", "by"),
    spare=("seq",),
    below=("details",),
)


@click.command(epilog=examples("rota run events b3e52e11", "rota run events b3e52e11 --json"))
@click.argument("id")
@shared
def events(id: str, database: str | None, as_json: bool) -> None:
    """Show every change of a run's state: when, from what to what, and by whom.

    ID is the beginning or the end of an id, or all of it.
    """

    async def question(client: Client) -> Any:
        return await client.events(id), await client.time()

    found, now = ask(database, question)
    _print(found, now, _RUN_COLUMNS, as_json=as_json)


@click.command("events", epilog=examples("rota schedule events news", "rota schedule events news --json"))
@click.argument("name")
@shared
def schedule_events(name: str, database: str | None, as_json: bool) -> None:
    """Show what was done to a schedule and with it, and by whom.

    Also to one that was deleted, as long as no other has its name.
    """

    async def question(client: Client) -> Any:
        return await client.schedules.events(name), await client.time()

    found, now = ask(database, question)
    _print(found, now, _SCHEDULE_COLUMNS, as_json=as_json)


@click.command(
    epilog=examples(
        "rota audit",
        "rota audit --actor cli:ann --kind schedule",
        "rota audit --subject news --limit 200 --json",
    )
)
@click.option("--kind", type=click.Choice(KINDS), help="Only what was done to one of these.")
@click.option("--subject", metavar="ID|NAME", help="Only to this one: a run's whole id, or a name.")
@click.option("--actor", metavar="NAME", help="Only by this one, for example cli:ann or policy:overlap.")
@click.option("--limit", type=int, default=50, show_default=True, metavar="N", help=f"At most {MOST_LISTED}.")
@click.option("--before", type=int, metavar="SEQ", help="The page after the one that ended with this number.")
@shared
def audit(limit: int, database: str | None, as_json: bool, **wanted: Any) -> None:
    """Show what people and policies did, newest first."""

    async def question(client: Client) -> Any:
        return await client.audit(limit=limit, **wanted), await client.time()

    found, now = ask(database, question)
    following = found[-1].seq if len(found) == limit else None
    if as_json:
        print_json({"items": found, "next_cursor": following})
        return
    print_rows(_AUDIT_COLUMNS, [_row(event, now, _AUDIT_COLUMNS) for event in found], none="nothing of the kind")
    if following and on_terminal():
        click.echo(f"more: --before {following}", err=True)


def _print(found: Sequence[Event], now: datetime, columns: Columns, *, as_json: bool) -> None:
    if as_json:
        print_json({"items": found, "next_cursor": None})
    else:
        print_rows(columns, [_row(event, now, columns) for event in found], none="nothing is known of it")


def _row(event: Event, now: datetime, columns: Columns) -> list[Cell]:
    cells = {
        "seq": text_cell(event.seq),
        "at": instant_cell(event.at, now),
        "kind": text_cell(event.kind),
        "subject": text_cell(event.subject),
        "event": Cell(event.type, event.type.replace("_", " ")),
        "from": _state_cell(event.from_state),
        "to": _state_cell(event.to_state),
        "fence": text_cell(event.fence),
        "by": text_cell(event.actor),
        "details": _details_cell(event.details),
    }
    return [cells[title] for title in columns.titles]


def _state_cell(state: RunState | None) -> Cell:
    return Cell("") if state is None else state_cell(state)


def _details_cell(details: dict[str, Any]) -> Cell:
    if not details:
        return Cell("")
    plain = msgspec.to_builtins(details)
    return Cell(json_text(plain), ", ".join(f"{key} {_shown(value)}" for key, value in details.items()))


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, dict) and value.keys() >= {"type", "message"}:
        return f"{value['type']}: {value['message']}"
    return value if isinstance(value, str) else json_text(value)
