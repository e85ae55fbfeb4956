"""`rota job pause|resume|cancel|retry|stats`: commands about a job as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import click

from rota.cli.jobs.live_limits import JOB_LIMIT
from rota.cli.terminal.cells import facts_of, row_of
from rota.cli.terminal.format import Cell, Columns
from rota.cli.terminal.output import emit, on_terminal
from rota.cli.terminal.run_format import print_new_run
from rota.cli.verbs.looks import Reply, facts, table
from rota.cli.verbs.verb_command import Consent, verb_command
from rota.cli.verbs.verb_options import Word
from rota.client.client import Client
from rota.client.jobs.jobs import JobVerbs
from rota.client.runs.runs import RunVerbs
from rota.core.jobs.status import RESUME_MODES, JobStatus
from rota.values.durations import span

_PAGE = 500
_CHANGED_JOB_COLUMNS = Columns(("job", "state", "running", "waiting"), cut=("job",))


async def _affected(client: Client, arguments: Mapping[str, Any]) -> tuple[JobStatus, int]:
    """Return the job's status, and how many of its schedules are enabled."""
    name, count, after = arguments["name"], 0, None
    while page := await client.schedules.list(job=name, limit=_PAGE, after=after):
        count += sum(schedule.definition.enabled for schedule in page)
        after = page[-1].name
    return await client.job_status(name), count


def _question(affected: tuple[JobStatus, int], arguments: Mapping[str, Any]) -> str:
    status, schedules = affected
    live = f"{status.running} running, {status.waiting} waiting"
    return f"cancel {arguments['name']} with {_many(schedules, 'schedule')} and its runs ({live}) until it is resumed?"


def _cancelled(reply: Reply) -> None:
    _, schedules = reply.before
    if on_terminal():
        resting = f"; {_many(schedules, 'schedule')} may not run until the job is resumed" if schedules else ""
        emit(f"cancelled {_many(reply.value.cancelled, 'run')}{resting}")
        return
    emit(str(reply.value.cancelled))
    if schedules:
        click.echo(f"note: {_many(schedules, 'schedule')} may not run until the job is resumed", err=True)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _rate_cell(rate: float | None) -> Cell:
    return Cell("") if rate is None else Cell(f"{rate:.4f}", f"{rate:.1%}")


def _duration_cell(ms: int | None) -> Cell:
    return Cell("") if ms is None else Cell(str(ms), span(timedelta(milliseconds=ms)))


_stats_facts = facts_of(
    "job total succeeded failed timed_out cancelled expired skipped success_rate"
    " average_duration_ms p50_duration_ms p95_duration_ms first_at last_execution_at next_scheduled_at",
    success_rate=lambda stats, _: _rate_cell(stats.success_rate),
    average_duration_ms=lambda stats, _: _duration_cell(stats.average_duration_ms),
    p50_duration_ms=lambda stats, _: _duration_cell(stats.p50_duration_ms),
    p95_duration_ms=lambda stats, _: _duration_cell(stats.p95_duration_ms),
)
_command = partial(verb_command, "", settings={"catch_up": {"type": Word(RESUME_MODES, open_ended=True)}})
_status = table(_CHANGED_JOB_COLUMNS, row_of(_CHANGED_JOB_COLUMNS))

COMMANDS = (
    _command(JobVerbs.pause_job, _status, "rota job pause crawl --reason 'the site is down'", name="pause"),
    _command(
        JobVerbs.resume_job, _status, "rota job resume crawl", "rota job resume crawl --catch-up latest", name="resume"
    ),
    _command(
        JobVerbs.cancel_job,
        _cancelled,
        "rota job cancel crawl --reason 'wrong list'",
        "rota job cancel crawl --yes --json",
        name="cancel",
        consent=Consent(_affected, _question),
    ),
    _command(
        RunVerbs.retry_job,
        lambda reply: print_new_run(reply.value, as_json=False),
        "rota job retry crawl",
        name="retry",
    ),
    JOB_LIMIT,
    _command(
        JobVerbs.job_stats, facts(_stats_facts), "rota job stats crawl", "rota job stats crawl --json", name="stats"
    ),
)
