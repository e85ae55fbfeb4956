"""`rota job` and `rota queue`: what the database knows of jobs, and what waits where."""

from __future__ import annotations

import click

from rota.cli.connecting import ask
from rota.cli.options import examples, shared
from rota.cli.output import json_text, print_facts, print_json, print_rows
from rota.cli.words import Cell, Columns, text_cell
from rota.client import Client
from rota.core.model import JobDefinition, QueueCount, with_empty_queues
from rota.durations import format_duration

_JOB_COLUMNS = Columns(("job", "version", "queue", "enabled", "description"), cut=("job", "queue", "description"))
_QUEUE_COLUMNS = Columns(("queue", "running", "queued", "scheduled"), cut=("queue",))


@click.group()
def job() -> None:
    """Jobs, as their workers declared them."""


@job.command("ls", epilog=examples("rota job ls", "rota job ls --json"))
@shared
def list_jobs(database: str | None, as_json: bool) -> None:
    """List the jobs that the database knows."""
    jobs = ask(database, lambda client: client.jobs())
    if as_json:
        print_json({"items": jobs, "next_cursor": None})
        return
    none = "no jobs yet: they appear when a worker that has them starts"
    print_rows(_JOB_COLUMNS, [_row(definition) for definition in jobs], none=none)


@job.command("show", epilog=examples("rota job show crawl", "rota job show crawl --json"))
@click.argument("name")
@shared
def show_job(name: str, database: str | None, as_json: bool) -> None:
    """Show what a job declares: its payload, policies and limits."""
    definition = ask(database, lambda client: client.job(name))
    if as_json:
        print_json(definition)
    else:
        print_facts(_facts(definition))


@click.group()
def queue() -> None:
    """Queues and what is in them."""


@queue.command("ls", epilog=examples("rota queue ls", "rota queue ls --json"))
@shared
def list_queues(database: str | None, as_json: bool) -> None:
    """List queues: runs that run, that may be claimed, and that wait for their time."""

    async def question(client: Client) -> list[QueueCount]:
        return with_empty_queues(await client.queues(), await client.jobs())

    counts = ask(database, question)
    if as_json:
        items = [dict(zip(_QUEUE_COLUMNS.titles, count, strict=True)) for count in counts]
        print_json({"items": items, "next_cursor": None})
        return
    print_rows(_QUEUE_COLUMNS, [[text_cell(fact) for fact in count] for count in counts], none="")


def _row(definition: JobDefinition) -> list[Cell]:
    enabled = Cell("yes", "yes", "green") if definition.enabled else Cell("no", "no", "yellow")
    summary = definition.description.partition("\n")[0]
    return [
        text_cell(definition.name),
        text_cell(definition.version),
        text_cell(definition.queue),
        enabled,
        text_cell(summary),
    ]


def _facts(definition: JobDefinition) -> list[tuple[str, Cell]]:
    return [
        ("job", text_cell(definition.name)),
        ("version", text_cell(definition.version)),
        ("kind", text_cell(definition.kind)),
        ("enabled", text_cell("yes" if definition.enabled else "no")),
        ("queue", text_cell(definition.queue)),
        ("priority", text_cell(definition.priority)),
        ("max_attempts", text_cell(definition.retry.max_attempts)),
        ("backoff", text_cell(json_text(definition.retry.backoff))),
        ("timeout", text_cell(format_duration(definition.timeout) if definition.timeout else None)),
        ("on_lost", text_cell(definition.on_lost)),
        ("isolation", text_cell(definition.isolation)),
        ("cancellable", text_cell("yes" if definition.cancel.supported else "no")),
        ("unique", text_cell(json_text(definition.unique) if definition.unique else None)),
        ("tags", text_cell(", ".join(definition.tags))),
        ("description", text_cell(definition.description)),
        ("payload", Cell(json_text(definition.payload_schema), json_text(definition.payload_schema, indent=2))),
    ]
