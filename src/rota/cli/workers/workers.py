"""`rota workers`: list, drain, resume, stop and reconfigure workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click

from rota.cli.options import Group, examples, queues_of
from rota.cli.terminal.cells import facts_of, row_of
from rota.cli.terminal.format import Cell, Columns, span_cell
from rota.cli.terminal.output import print_facts, print_rows
from rota.cli.verbs.looks import Reply, table
from rota.cli.verbs.verb_command import Consent, verb_command
from rota.client.workers.workers import WorkersClient
from rota.core.workers.worker import OperatorRequest, Worker, WorkerState
from rota.values.durations import format_duration

_COLUMNS = Columns(
    ("id", "state", "host", "runs", "slots", "queues", "last heartbeat", "version", "labels", "requested"),
    cut=("host", "queues", "labels"),
    spare=("labels", "slots", "last heartbeat", "queues", "host", "version"),
    below=("requested",),
)
_RUN_COLUMNS = Columns(("run", "job", "attempt", "for"), cut=("job",))
_NOBODY = "no workers in the last 24 hours: start `rota dev` or `rota worker MODULE:APP`"
_QUEUES = {"type": queues_of, "metavar": "A:3,B", "help": "Claim only from these queues; a weight follows the colon."}


@click.group(cls=Group, epilog=examples("rota workers list", "rota workers drain web-1"))
def workers() -> None:
    """List, drain, resume, stop and reconfigure workers.

    WORKER is an id, the beginning of one, or a name, which stands for all workers of that name.
    """


def _below(cell: Cell) -> Cell:
    return Cell(cell.plain, f"requested: {cell.plain}" if cell.plain else "")


def _queues_cell(queues: dict[str, int]) -> Cell:
    weighed = len(set(queues.values())) > 1
    return Cell(",".join(f"{queue}:{weight}" if weighed else queue for queue, weight in queues.items()))


def _asked_cell(request: OperatorRequest | None) -> Cell:
    if request is None:
        return Cell("")
    settings = request.settings
    words = [] if request.state is WorkerState.WORKING else [request.state.value]
    words += [f"slots {settings.slots}"] if settings.slots else []
    words += [f"queues {_queues_cell(settings.queues).plain}"] if settings.queues else []
    words += [f"heartbeat {format_duration(settings.heartbeat)}"] if settings.heartbeat else []
    words += [f"poll {format_duration(settings.poll)}"] if settings.poll else []
    return Cell(", ".join(words))


_row = row_of(
    _COLUMNS,
    runs="held",
    queues=lambda worker, _: _queues_cell(worker.queues),
    last_heartbeat="seen_at",
    labels=lambda worker, _: ",".join(worker.labels),
    requested=lambda worker, _: _below(_asked_cell(worker.asked)),
)
_facts = facts_of(
    "id name state host pid version app_version labels queues jobs slots held heartbeat poll started_at seen_at asked"
    " asked_by",
    queues=lambda worker, _: _queues_cell(worker.queues),
    asked=lambda worker, _: _asked_cell(worker.asked),
)
_run_row = row_of(_RUN_COLUMNS, run="id", **{"for": lambda run, now: span_cell(run.claimed_at, None, now)})


def _show(reply: Reply) -> None:
    print_facts(_facts(reply.value, reply.now))
    if reply.value.runs:
        print_rows(_RUN_COLUMNS, [_run_row(run, reply.now) for run in reply.value.runs], none="")


def _question(named: Sequence[Worker], arguments: Mapping[str, Any]) -> str | None:
    """Count the living: one that died, or was silent for longer than its lease, stays listed for a day."""
    living = [worker for worker in named if worker.state is not WorkerState.GONE]
    held = sum(worker.held for worker in living)
    runs = f"{held} run{'' if held == 1 else 's'}"
    who = f"{len(living)} workers named {arguments['id_or_name']}"
    return f"stop {who}, which execute {runs}?" if len(living) > 1 else None


_stop = Consent(lambda client, arguments: client.workers.find(arguments["id_or_name"]), _question)
_table = table(_COLUMNS, _row, _NOBODY)
_command = partial(verb_command, "workers", settings={"id_or_name": {"metavar": "WORKER"}, "queues": _QUEUES})

for command in (
    _command(WorkersClient.list, _table, "rota workers list", "rota workers list --json"),
    _command(WorkersClient.get, _show, "rota workers get web-1", "rota workers get web-1@5be1 --json"),
    _command(WorkersClient.drain, _table, "rota workers drain web-1"),
    _command(WorkersClient.resume, _table, "rota workers resume web-1"),
    _command(WorkersClient.stop, _table, "rota workers stop web-1", "rota workers stop web --yes", consent=_stop),
    _command(
        WorkersClient.update,
        _table,
        "rota workers update web-1 --slots 50",
        "rota workers update web --queues critical:4,default --poll 500ms",
    ),
):
    workers.add_command(command)
