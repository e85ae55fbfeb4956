"""`rota queue`: list, pause and resume queues."""

from __future__ import annotations

import click

from rota.cli.connect import actor, ask
from rota.cli.options import Group, examples, shared
from rota.cli.terminal.format import Cell, Columns, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_json, print_rows
from rota.core.jobs.queues import Queue

_COLUMNS = Columns(("queue", "running", "queued", "scheduled", "paused", "reason"), cut=("queue", "reason"))


@click.group(cls=Group, epilog=examples("rota queue list", "rota queue pause mail"))
def queue() -> None:
    """List, pause and resume queues."""


@queue.command("list", epilog=examples("rota queue list", "rota queue list --json"))
@click.option("--limit", type=int, default=100, show_default=True, metavar="N", help="At most 1000.")
@click.option("--after", metavar="NAME", help="The page after the one that ended with this name.")
@shared
def list_queues(limit: int, after: str | None, database: str | None, as_json: bool) -> None:
    """List queues with their running, queued and scheduled runs."""
    queues = ask(database, lambda client: client.queues(limit=limit, after=after))
    next_cursor = queues[-1].queue if len(queues) == limit else None
    if as_json:
        print_json({"items": queues, "next_cursor": next_cursor})
        return
    print_rows(_COLUMNS, [_row(queue) for queue in queues], none="")
    if next_cursor and on_terminal():
        click.echo(f"more: --after {next_cursor}", err=True)


@queue.command("pause", epilog=examples("rota queue pause mail --reason 'the relay is down'"))
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Stored with the pause.")
@shared
def pause_queue(name: str, reason: str | None, database: str | None, as_json: bool) -> None:
    """Pause a queue: no run of it is claimed until it is resumed.

    Runs can still be enqueued, and wait. Running runs continue.
    """
    queue = ask(database, lambda client: client.pause_queue(name, reason=reason, actor=actor()))
    _report(queue, f"queue {name} is paused", as_json=as_json)


@queue.command("resume", epilog=examples("rota queue resume mail"))
@click.argument("name")
@shared
def resume_queue(name: str, database: str | None, as_json: bool) -> None:
    """Resume a paused queue."""
    queue = ask(database, lambda client: client.resume_queue(name, actor=actor()))
    message = f"queue {name} is resumed" if queue.was_paused else f"queue {name} was not paused"
    _report(queue, message, as_json=as_json)


def _report(queue: Queue, message: str, *, as_json: bool) -> None:
    if as_json:
        print_json(queue)
    elif on_terminal():
        emit(message)


def _row(queue: Queue) -> list[Cell]:
    paused = Cell("no", "no") if queue.paused is None else Cell("yes", "yes", "yellow")
    counts = (queue.queue, queue.running, queue.queued, queue.scheduled)
    return [*(text_cell(fact) for fact in counts), paused, text_cell(queue.paused.reason if queue.paused else None)]
