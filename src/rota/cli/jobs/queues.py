"""`rota queue`: list, pause, resume and limit queues."""

from __future__ import annotations

from functools import partial

import click

from rota.cli.jobs.live_limits import QUEUE_LIMIT, limit_cell
from rota.cli.options import Group, examples
from rota.cli.terminal.cells import row_of, yes_cell
from rota.cli.terminal.format import Columns
from rota.cli.verbs.looks import Reply, sentence, table
from rota.cli.verbs.verb_command import verb_command
from rota.client.jobs.jobs import JobVerbs

_COLUMNS = Columns(("queue", "running", "queued", "scheduled", "paused", "reason", "limit"), cut=("queue", "reason"))


@click.group(cls=Group, epilog=examples("rota queue list", "rota queue pause mail", "rota queue limit mail 5/s"))
def queue() -> None:
    """List, pause, resume and limit queues."""


_row = row_of(
    _COLUMNS,
    paused=lambda queue, _: yes_cell(queue.paused is not None, "yellow"),
    reason=lambda queue, _: queue.paused and queue.paused.reason,
    limit=lambda queue, _: limit_cell(queue.live_limit),
)


def _resumed(reply: Reply) -> None:
    sentence("queue {name} is resumed" if reply.value.was_paused else "queue {name} was not paused")(reply)


_command = partial(verb_command, "")

for command in (
    _command(JobVerbs.queues, table(_COLUMNS, _row), "rota queue list", "rota queue list --json", name="list"),
    _command(
        JobVerbs.pause_queue,
        sentence("queue {name} is paused"),
        "rota queue pause mail --reason 'the relay is down'",
        name="pause",
    ),
    _command(JobVerbs.resume_queue, _resumed, "rota queue resume mail", name="resume"),
    QUEUE_LIMIT,
):
    queue.add_command(command)
