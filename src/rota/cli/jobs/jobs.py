"""`rota job`: list and show jobs."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import click

from rota.cli.jobs import bulk_jobs, data_jobs, job_control
from rota.cli.jobs.live_limits import limit_cell
from rota.cli.options import Group, examples
from rota.cli.terminal.expectation_format import expected_facts
from rota.cli.terminal.format import Cell, Columns, age_cell, instant_cell, job_state_cell, text_cell
from rota.cli.terminal.output import json_text, print_facts
from rota.cli.verbs.looks import Reply, table
from rota.cli.verbs.verb_command import verb_command
from rota.client.jobs.jobs import JobVerbs
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.status import JobStatus, JobView
from rota.core.limits.live import LiveLimit
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


def _row(job: JobView, now: datetime) -> list[Cell]:
    enabled = Cell("yes", "yes", "green") if job.enabled else Cell("no", "no", "yellow")
    return [
        text_cell(job.name),
        job_state_cell(job.status.state),
        age_cell(job.status.last_run_at, now),
        age_cell(job.status.next_at, now),
        text_cell(job.version),
        text_cell(job.queue),
        enabled,
        text_cell(job.description.partition("\n")[0]),
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
        *_limit_facts(status.live_limit, now),
    ]


def _limit_facts(limit: LiveLimit | None, now: datetime) -> list[tuple[str, Cell]]:
    if limit is None:
        return [("live_limit", Cell(""))]
    return [
        ("live_limit", limit_cell(limit)),
        ("limited_since", instant_cell(limit.since, now)),
        ("limited_by", text_cell(limit.by)),
        ("limit_reason", text_cell(limit.reason)),
        ("limited_until", instant_cell(limit.until, now)),
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


def _show(reply: Reply) -> None:
    first, *rest = _facts(reply.value)
    status = _status_facts(reply.value.status, reply.now)
    print_facts([first, *status, *expected_facts(reply.also, reply.now), *rest])


_command = partial(verb_command, "")

for command in (
    _command(
        JobVerbs.jobs,
        table(_JOB_COLUMNS, _row, "no jobs yet: they appear when a worker that declares them starts"),
        "rota job list",
        "rota job list --json",
        name="list",
    ),
    _command(
        JobVerbs.job,
        _show,
        "rota job get crawl",
        "rota job get crawl --json",
        name="get",
        words="Show a job's state, payload schema, policies and limits.",
        also=lambda client, job, _: client.expectations.find("job", job.name),
    ),
    *job_control.COMMANDS,
    *data_jobs.COMMANDS,
    *bulk_jobs.COMMANDS,
):
    job.add_command(command)
