"""`rota job`: list and show jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from rota.cli.connect import ask
from rota.cli.jobs import data_jobs, job_control
from rota.cli.jobs.job_control import job_filter_options
from rota.cli.options import Group, examples, shared
from rota.cli.terminal.expectation_format import expected_facts
from rota.cli.terminal.format import Cell, Columns, age_cell, instant_cell, job_state_cell, text_cell
from rota.cli.terminal.output import json_text, on_terminal, plain_value, print_facts, print_json, print_rows
from rota.client.client import Client
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import JobStatus, JobView
from rota.values.durations import format_duration
from rota.values.sizes import format_size

_JOB_COLUMNS = Columns(
    ("job", "state", "last", "next", "version", "queue", "enabled", "description"),
    cut=("job", "queue", "description"),
    spare=("queue", "version", "enabled"),
)


@click.group(
    cls=Group,
    epilog=examples("rota job list", "rota job stats crawl", "rota job pause crawl --reason 'the site is down'"),
)
def job() -> None:
    """List, show, pause, cancel and retry jobs; create data jobs."""


for _command in (*job_control.COMMANDS, *data_jobs.COMMANDS):
    job.add_command(_command)


@job.command("list", epilog=examples("rota job list", "rota job list --tag billing --state failed --json"))
@job_filter_options
@click.option("--limit", type=int, default=100, show_default=True, metavar="N", help="At most 1000.")
@click.option("--after", metavar="NAME", help="The page after the one that ended with this name.")
@shared
def list_jobs(limit: int, database: str | None, as_json: bool, **options: Any) -> None:
    """List jobs by name, with their state."""

    async def question(client: Client) -> tuple[Sequence[JobView], datetime]:
        return await client.jobs(limit=limit, **options), await client.time()

    jobs, now = ask(database, question)
    next_cursor = jobs[-1].name if len(jobs) == limit else None
    if as_json:
        print_json({"items": jobs, "next_cursor": next_cursor})
        return
    none = "no jobs yet: they appear when a worker that declares them starts"
    print_rows(_JOB_COLUMNS, [_row(job, now) for job in jobs], none=none)
    if next_cursor and on_terminal():
        click.echo(f"more: --after {next_cursor}", err=True)


@job.command("get", epilog=examples("rota job get crawl", "rota job get crawl --json"))
@click.argument("name")
@shared
def get_job(name: str, database: str | None, as_json: bool) -> None:
    """Show a job's state, payload schema, policies and limits."""

    async def question(client: Client) -> Any:
        return await client.job(name), await client.expectations.find("job", name), await client.time()

    job, expected, now = ask(database, question)
    if as_json:
        print_json({**plain_value(job), "expected": expected})
    else:
        first, *rest = _facts(job)
        print_facts([first, *_status_facts(job.status, now), *expected_facts(expected, now), *rest])


def _row(job: JobView, now: datetime) -> list[Cell]:
    enabled = Cell("yes", "yes", "green") if job.enabled else Cell("no", "no", "yellow")
    summary = job.description.partition("\n")[0]
    return [
        text_cell(job.name),
        job_state_cell(job.status.state),
        age_cell(job.status.last_run_at, now),
        age_cell(job.status.next_at, now),
        text_cell(job.version),
        text_cell(job.queue),
        enabled,
        text_cell(summary),
    ]


def _status_facts(status: JobStatus, now: datetime) -> list[tuple[str, Cell]]:
    return [
        ("state", job_state_cell(status.state)),
        ("running", text_cell(status.running)),
        ("waiting", text_cell(status.waiting)),
        ("last_run_at", instant_cell(status.last_run_at, now)),
        ("next_at", instant_cell(status.next_at, now)),
        ("paused_at", instant_cell(status.paused_at, now)),
        ("paused_by", text_cell(status.paused_by)),
        ("pause_reason", text_cell(status.pause_reason)),
    ]


def _facts(definition: JobDefinition) -> list[tuple[str, Cell]]:
    return [
        ("job", text_cell(definition.name)),
        ("version", text_cell(definition.version)),
        ("kind", text_cell(definition.kind)),
        *((name, text_cell(value)) for name, value in data_jobs.facts(definition)),
        ("enabled", text_cell("yes" if definition.enabled else "no")),
        ("queue", text_cell(definition.queue)),
        ("priority", text_cell(definition.priority)),
        ("max_attempts", text_cell(definition.retry.max_attempts)),
        ("backoff", text_cell(json_text(definition.retry.backoff))),
        ("timeout", text_cell(format_duration(definition.timeout) if definition.timeout else None)),
        ("on_lost", text_cell(definition.on_lost)),
        ("isolation", text_cell(definition.isolation)),
        ("cpu_limit", text_cell(format_duration(definition.cpu_limit) if definition.cpu_limit else None)),
        ("memory_limit", text_cell(format_size(definition.memory_limit) if definition.memory_limit else None)),
        ("local_retries", text_cell(definition.local_retries or None)),
        ("cancellable", text_cell("yes" if definition.cancel.supported else "no")),
        ("unique", text_cell(json_text(definition.unique) if definition.unique else None)),
        ("limits", text_cell(json_text(definition.limits) if definition.limits else None)),
        ("tags", text_cell(", ".join(definition.tags))),
        ("description", text_cell(definition.description)),
        ("payload", Cell(json_text(definition.payload_schema), json_text(definition.payload_schema, indent=2))),
    ]
