"""`rota queue`: list, pause and resume queues."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rota.cli.connect import actor, ask
from rota.cli.options import Group, examples, shared
from rota.cli.terminal.format import Cell, Columns, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_json, print_rows
from rota.client.client import Client
from rota.core.jobs.queues import Pause, QueueCount, with_empty_queues

_COLUMNS = Columns(("queue", "running", "queued", "scheduled", "paused", "reason"), cut=("queue", "reason"))


@click.group(cls=Group, epilog=examples("rota queue list", "rota queue pause mail"))
def queue() -> None:
    """List, pause and resume queues."""


@queue.command("list", epilog=examples("rota queue list", "rota queue list --json"))
@shared
def list_queues(database: str | None, as_json: bool) -> None:
    """List queues with their running, queued and scheduled runs."""

    async def question(client: Client) -> tuple[list[QueueCount], Sequence[Pause]]:
        paused = await client.paused_queues()
        counts = with_empty_queues(await client.queues(), await client.jobs())
        names = {count[0] for count in counts}
        return sorted([*counts, *((pause.name, 0, 0, 0) for pause in paused if pause.name not in names)]), paused

    counts, pauses = ask(database, question)
    paused = {pause.name: pause for pause in pauses}
    if as_json:
        items = [
            {**dict(zip(_COLUMNS.titles, count, strict=False)), "paused": paused.get(count[0])} for count in counts
        ]
        print_json({"items": items, "next_cursor": None})
        return
    print_rows(_COLUMNS, [_row(count, paused.get(count[0])) for count in counts], none="")


@queue.command("pause", epilog=examples("rota queue pause mail --reason 'the relay is down'"))
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Stored with the pause.")
@shared
def pause_queue(name: str, reason: str | None, database: str | None, as_json: bool) -> None:
    """Pause a queue: no run of it is claimed until it is resumed.

    Runs can still be enqueued, and wait. Running runs continue.
    """
    ask(database, lambda client: client.pause_queue(name, reason=reason, actor=actor()))
    _report({"queue": name, "paused": True}, f"queue {name} is paused", as_json=as_json)


@queue.command("resume", epilog=examples("rota queue resume mail"))
@click.argument("name")
@shared
def resume_queue(name: str, database: str | None, as_json: bool) -> None:
    """Resume a paused queue."""
    was_paused = ask(database, lambda client: client.resume_queue(name, actor=actor()))
    message = f"queue {name} is resumed" if was_paused else f"queue {name} was not paused"
    _report({"queue": name, "paused": False}, message, as_json=as_json)


def _report(document: dict[str, object], message: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    elif on_terminal():
        emit(message)


def _row(count: QueueCount, pause: Pause | None) -> list[Cell]:
    paused = Cell("no", "no") if pause is None else Cell("yes", "yes", "yellow")
    return [*(text_cell(fact) for fact in count), paused, text_cell(pause.reason if pause else None)]
