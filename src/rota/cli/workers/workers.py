"""`rota workers`: list, drain, resume, stop and reconfigure workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from rota.cli.connect import actor, ask
from rota.cli.options import Group, examples, queues_of, shared
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.format import Cell, Columns, age_cell, instant_cell, span_cell, text_cell, worker_state_cell
from rota.cli.terminal.output import print_facts, print_json, print_rows
from rota.client.client import Client
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

who = click.argument("who", metavar="WORKER")


@click.group(cls=Group, epilog=examples("rota workers list", "rota workers drain web-1"))
def workers() -> None:
    """List, drain, resume, stop and reconfigure workers.

    WORKER is an id, the beginning of one, or a name, which stands for all workers of that name.
    """


@workers.command("list", epilog=examples("rota workers list", "rota workers list --json"))
@shared
def list_workers(database: str | None, as_json: bool) -> None:
    """List workers, including those that stopped responding."""

    async def question(client: Client) -> tuple[Sequence[Worker], datetime]:
        return await client.workers.list(), await client.time()

    _print(*ask(database, question), as_json=as_json)


@workers.command("get", epilog=examples("rota workers get web-1", "rota workers get web-1@5be1 --json"))
@who
@shared
def get(who: str, database: str | None, as_json: bool) -> None:
    """Show a worker with its settings, runs and pending requests."""

    async def question(client: Client) -> tuple[Worker, datetime]:
        return await client.workers.get(who), await client.time()

    worker, now = ask(database, question)
    if as_json:
        print_json(worker)
        return
    print_facts(_facts(worker, now))
    if worker.runs:
        print_rows(_RUN_COLUMNS, [_run_row(run, now) for run in worker.runs], none="")


@workers.command("drain", epilog=examples("rota workers drain web-1"))
@who
@shared
def drain(who: str, database: str | None, as_json: bool) -> None:
    """Stop a worker from claiming runs; its current runs finish.

    The process stays until it is resumed or stopped. The request reaches it with its next heartbeat.
    """
    _command(database, "drain", who, as_json=as_json)


@workers.command("resume", epilog=examples("rota workers resume web-1"))
@who
@shared
def resume(who: str, database: str | None, as_json: bool) -> None:
    """Let a drained worker claim runs again."""
    _command(database, "resume", who, as_json=as_json)


@workers.command("stop", epilog=examples("rota workers stop web-1", "rota workers stop web --yes"))
@who
@yes_option
@shared
def stop(who: str, yes: bool, database: str | None, as_json: bool) -> None:
    """Stop a worker as SIGTERM does.

    Its runs get `shutdown_grace` to finish, then the process ends. A supervisor (`rota worker --processes`) does not
    replace it. If several workers have the name, it asks first.
    """
    workers_named = ask(database, lambda client: client.workers.find(who))
    if len(workers_named) > 1 and not yes:
        held = sum(worker.held for worker in workers_named)
        question = f"stop {len(workers_named)} workers named {who}, which execute {held} run{'' if held == 1 else 's'}?"
        require_consent(question, command=f"rota workers stop {who}")
    _command(database, "stop", who, as_json=as_json)


@workers.command(
    "update",
    epilog=examples(
        "rota workers update web-1 --slots 50", "rota workers update web --queues critical:4,default --poll 500ms"
    ),
)
@who
@click.option("--slots", type=int, metavar="N", help="Runs at a time.")
@click.option(
    "--queues", type=queues_of, metavar="A:3,B", help="Claim only from these queues; a weight follows the colon."
)
@click.option("--heartbeat", metavar="DURATION", help="How often it renews its leases.")
@click.option("--poll", metavar="DURATION", help="How often it looks for runs without a notification.")
@shared
def update(who: str, database: str | None, as_json: bool, **settings: Any) -> None:
    """Change settings of a running worker.

    Settings that are not given stay. Changes apply from the next heartbeat and the next claim, until the process ends.
    Current runs are not affected.
    """
    _command(database, "update", who, as_json=as_json, **settings)


def _command(database: str | None, verb: str, who: str, *, as_json: bool, **settings: Any) -> None:
    async def command(client: Client) -> tuple[Sequence[Worker], datetime]:
        return await getattr(client.workers, verb)(who, actor=actor(), **settings), await client.time()

    _print(*ask(database, command), as_json=as_json)


def _print(listed: Sequence[Worker], now: datetime, *, as_json: bool) -> None:
    if as_json:
        print_json({"items": listed, "next_cursor": None})
    else:
        print_rows(_COLUMNS, [_row(worker, now) for worker in listed], none=_NOBODY)


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
