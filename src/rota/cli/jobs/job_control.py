"""`rota job pause|resume|cancel|retry|stats`: commands about a job as a whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from rota.cli.connect import actor, ask
from rota.cli.options import catch_up_option, examples, shared
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.format import Cell, Columns, instant_cell, job_state_cell, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_facts, print_json, print_rows
from rota.cli.terminal.run_format import print_new_run
from rota.client.client import Client
from rota.core.jobs.status import JobStatus
from rota.core.monitoring.statistics import JobStats
from rota.core.runs.run import Run
from rota.values.durations import span

_PAGE = 1_000
_CHANGED_JOB_COLUMNS = Columns(("job", "state", "running", "waiting"), cut=("job",))


F = TypeVar("F", bound=Callable[..., Any])

_FILTER = (
    click.option("--name", metavar="PATTERN", help="Only jobs of this name, or matching a pattern: 'import-*'."),
    click.option("--kind", metavar="KIND", help="Only jobs of this kind: python, http, command, external, pipeline."),
    click.option("--queue", metavar="NAME", help="Only jobs of this queue."),
    click.option("--tag", metavar="TAG", help="Only jobs with this tag."),
    click.option("--state", metavar="STATE", help="Only jobs in this state: paused, failed, running, …"),
)


def job_filter_options(command: F) -> F:
    """Add the options that select jobs."""
    for option in reversed(_FILTER):
        command = option(command)
    return command


@click.command(epilog=examples("rota job pause crawl --reason 'the site is down'"))
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Stored with the pause.")
@shared
def pause(name: str, reason: str | None, database: str | None, as_json: bool) -> None:
    """Pause a job: no run of it starts until it is resumed.

    Its schedules plan nothing and its runs wait. Running runs continue.
    """
    status = ask(database, lambda client: client.pause_job(name, reason=reason, actor=actor()))
    _print_status(status, as_json=as_json)


@click.command(epilog=examples("rota job resume crawl", "rota job resume crawl --catch-up latest"))
@click.argument("name")
@catch_up_option
@shared
def resume(name: str, catch_up: str, database: str | None, as_json: bool) -> None:
    """Resume a paused job."""
    status = ask(database, lambda client: client.resume_job(name, catch_up=catch_up, actor=actor()))
    _print_status(status, as_json=as_json)


@click.command(epilog=examples("rota job cancel crawl --reason 'wrong list'", "rota job cancel crawl --yes --json"))
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Stored with the runs.")
@yes_option
@shared
def cancel(name: str, reason: str | None, yes: bool, database: str | None, as_json: bool) -> None:
    """Disable a job's schedules and cancel its runs.

    Waiting runs end at once; running ones are asked to stop.
    """

    async def question(client: Client) -> tuple[JobStatus, int]:
        return await client.job_status(name), await _enabled_schedules(client, name)

    status, schedules = ask(database, question)
    if not yes:
        live = f"{status.running} running, {status.waiting} waiting"
        disabled = f"disable {_many(schedules, 'schedule')} of {name}"
        require_consent(f"{disabled} and cancel its runs ({live})?", command=f"rota job cancel {name}")
    count = ask(database, lambda client: client.cancel_job(name, reason=reason, actor=actor())).cancelled
    if as_json:
        print_json({"job": name, "cancelled": count, "schedules_disabled": schedules})
    elif on_terminal():
        emit(f"cancelled {_many(count, 'run')}, disabled {_many(schedules, 'schedule')}")
    else:
        emit(str(count))
        if schedules:
            click.echo(f"note: disabled {_many(schedules, 'schedule')}", err=True)


async def _enabled_schedules(client: Client, job: str) -> int:
    count, after = 0, None
    while page := await client.schedules.list(job=job, limit=_PAGE, after=after):
        count += sum(schedule.definition.enabled for schedule in page)
        after = page[-1].name
    return count


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


@click.command(epilog=examples("rota job retry crawl"))
@click.argument("name")
@shared
def retry(name: str, database: str | None, as_json: bool) -> None:
    """Retry a job's newest run, if it did not succeed."""

    async def command(client: Client) -> Run:
        return await client.get((await client.retry_job(name, actor=actor())).id)

    print_new_run(ask(database, command), as_json=as_json)


@click.command(epilog=examples("rota job stats crawl", "rota job stats crawl --json"))
@click.argument("name")
@shared
def stats(name: str, database: str | None, as_json: bool) -> None:
    """Show how a job's runs ended and how long they took.

    Pruned runs are included.
    """

    async def question(client: Client) -> tuple[JobStats, datetime]:
        return await client.job_stats(name), await client.time()

    statistics, now = ask(database, question)
    if as_json:
        print_json(statistics)
    else:
        print_facts(_stats_facts(statistics, now))


def _stats_facts(stats: JobStats, now: datetime) -> list[tuple[str, Cell]]:
    counts = ("total", "succeeded", "failed", "timed_out", "cancelled", "expired", "skipped")
    rate = stats.success_rate
    return [
        ("job", text_cell(stats.job)),
        *((name, text_cell(getattr(stats, name))) for name in counts),
        ("success_rate", Cell("") if rate is None else Cell(f"{rate:.4f}", f"{rate:.1%}")),
        ("average_duration_ms", _duration_cell(stats.average_duration_ms)),
        ("p95_duration_ms", _duration_cell(stats.p95_duration_ms)),
        ("first_at", instant_cell(stats.first_at, now)),
        ("last_execution_at", instant_cell(stats.last_execution_at, now)),
        ("next_scheduled_at", instant_cell(stats.next_scheduled_at, now)),
    ]


def _duration_cell(ms: int | None) -> Cell:
    return Cell("") if ms is None else Cell(str(ms), span(timedelta(milliseconds=ms)))


def _print_status(status: JobStatus, *, as_json: bool) -> None:
    if as_json:
        print_json(status)
    else:
        counts = [text_cell(status.running), text_cell(status.waiting)]
        print_rows(_CHANGED_JOB_COLUMNS, [[text_cell(status.job), job_state_cell(status.state), *counts]], none="")


COMMANDS = (pause, resume, cancel, retry, stats)
