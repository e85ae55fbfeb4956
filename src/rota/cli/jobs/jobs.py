"""`rota job`: list and show jobs."""

from __future__ import annotations

from functools import partial

import click

from rota.cli.jobs import bulk_jobs, data_jobs, job_control
from rota.cli.jobs.live_limits import limit_cell
from rota.cli.options import Group, examples
from rota.cli.terminal.cells import facts_of, row_of, yes_cell
from rota.cli.terminal.expectation_format import expected_facts
from rota.cli.terminal.format import Cell, Columns, text_cell
from rota.cli.terminal.output import json_text, print_facts
from rota.cli.verbs.looks import Reply, table
from rota.cli.verbs.verb_command import verb_command
from rota.client.jobs.jobs import JobVerbs
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


_row = row_of(
    _JOB_COLUMNS,
    job="name",
    state="status.state",
    last="status.last_run_at",
    next="status.next_at",
    enabled=lambda job, _: yes_cell(job.enabled, "green", "yellow"),
    description=lambda job, _: job.description.partition("\n")[0],
)
_status_facts = facts_of("state running waiting last_run_at next_at paused_at paused_by pause_reason")
_limit_facts = facts_of(
    "live_limit limited_since limited_by limit_reason limited_until",
    live_limit=lambda limit, _: limit_cell(limit),
    limited_since="since",
    limited_by="by",
    limit_reason="reason",
    limited_until="until",
)
_head_facts = facts_of("job version kind", job="name")
_facts = facts_of(
    "enabled queue priority max_attempts backoff timeout on_lost isolation cpu_limit memory_limit local_retries"
    " cancellable unique limits tags description payload",
    max_attempts="retry.max_attempts",
    backoff="retry.backoff",
    memory_limit=lambda job, _: format_size(job.memory_limit) if job.memory_limit else None,
    local_retries=lambda job, _: job.local_retries or None,
    cancellable="cancel.supported",
    limits=lambda job, _: json_text(job.limits) if job.limits else None,
    payload="payload_schema",
)


def _show(reply: Reply) -> None:
    job, now = reply.value, reply.now
    limit = job.status.live_limit
    (name, *head), status = _head_facts(job, now), _status_facts(job.status, now)
    status += [("live_limit", Cell(""))] if limit is None else _limit_facts(limit, now)
    does = [(word, text_cell(value)) for word, value in data_jobs.facts(job)]
    print_facts([name, *status, *expected_facts(reply.also, now), *head, *does, *_facts(job, now)])


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
