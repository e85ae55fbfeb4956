"""`rota workers`: list, drain, resume, stop and reconfigure workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import click

from rota.cli.options import Group, examples, queues_of
from rota.cli.terminal.format import Cell, Columns, age_cell, instant_cell, span_cell, text_cell, worker_state_cell
from rota.cli.terminal.output import print_facts, print_rows
from rota.cli.verbs.looks import Reply, table
from rota.cli.verbs.verb_command import Consent, verb_command
from rota.client.workers.workers import WorkersClient
from rota.core.workers.worker import OperatorRequest, Worker, WorkerRun, WorkerState
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


def _row(worker: Worker, now: datetime) -> list[Cell]:
    return [
        text_cell(worker.id),
        worker_state_cell(worker.state),
        text_cell(worker.host),
        text_cell(worker.held),
        text_cell(worker.slots),
        _queues_cell(worker.queues),
        age_cell(worker.seen_at, now),
        text_cell(worker.version),
        text_cell(",".join(worker.labels)),
        _below(_asked_cell(worker.asked)),
    ]


def _below(cell: Cell) -> Cell:
    return Cell(cell.plain, f"requested: {cell.plain}" if cell.plain else "")


def _facts(worker: Worker, now: datetime) -> list[tuple[str, Cell]]:
    return [
        ("id", text_cell(worker.id)),
        ("name", text_cell(worker.name)),
        ("state", worker_state_cell(worker.state)),
        ("host", text_cell(worker.host)),
        ("pid", text_cell(worker.pid)),
        ("version", text_cell(worker.version)),
        ("app_version", text_cell(worker.app_version)),
        ("labels", text_cell(", ".join(worker.labels))),
        ("queues", _queues_cell(worker.queues)),
        ("jobs", text_cell(", ".join(worker.jobs))),
        ("slots", text_cell(worker.slots)),
        ("held", text_cell(worker.held)),
        ("heartbeat", text_cell(worker.heartbeat and format_duration(worker.heartbeat))),
        ("poll", text_cell(worker.poll and format_duration(worker.poll))),
        ("started_at", instant_cell(worker.started_at, now)),
        ("seen_at", instant_cell(worker.seen_at, now)),
        ("asked", _asked_cell(worker.asked)),
        ("asked_by", text_cell(worker.asked_by)),
    ]


def _run_row(run: WorkerRun, now: datetime) -> list[Cell]:
    return [text_cell(run.id), text_cell(run.job), text_cell(run.attempt), span_cell(run.claimed_at, None, now)]


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
