"""Formats of runs, attempts and replicas, as rows and facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rota.cli.terminal.cells import facts_of, json_cell, row_of
from rota.cli.terminal.format import Cell, Columns, span_cell, state_cell, text_cell, whole_id_cell
from rota.cli.terminal.output import emit, json_text, on_terminal, print_json, print_rows
from rota.core.ledger.family import FamilyRun
from rota.core.runs.run import Attempt, Measures, Run, RunError
from rota.core.schedules.job_triggers import because, cause_of
from rota.core.workers.replicas import Replica

RUN_COLUMNS = Columns(
    ("id", "state", "job", "created", "took", "attempt", "queue"),
    cut=("job", "queue"),
    spare=("created", "took", "attempt", "queue"),
)
ATTEMPT_COLUMNS = Columns(
    ("attempt", "outcome", "worker", "claimed", "took", "error", "measured"),
    cut=("worker",),
    below=("error", "measured"),
)
REPLICA_COLUMNS = Columns(("worker", "state", "attempt", "run", "error"), cut=("worker",), below=("error",))
RELATED_COLUMNS = Columns(("id", "state", "job", "on", "otherwise"), cut=("job",), spare=("otherwise",))
MEMBER_COLUMNS = Columns(("id", "state", "job", "because_of"), cut=("job", "because_of"), spare=("because_of",))
_CHANGED_RUN_COLUMNS = Columns(("id", "state", "job"), cut=("job",))
_changed_row = row_of(_CHANGED_RUN_COLUMNS)
_PRUNED = Cell("", "pruned")


def _measured(attempt: Attempt, _: datetime) -> Cell:
    measures = Measures(attempt.cpu_time_ms, attempt.memory_peak_mb, attempt.counters)
    return Cell(json_text(measures), attempt.measured) if measures != Measures() else Cell("")


def error_line(error: RunError) -> str:
    return f"{error.type}: {error.message}"


def _because(run: Run, _: datetime) -> str | None:
    cause = cause_of(run.metadata)
    return None if cause is None else because(cause).removeprefix("because ")


def _error_cell(error: RunError | None) -> Cell:
    if error is None:
        return Cell("")
    return Cell(error_line(error), (error.traceback or error_line(error)).rstrip(), "red")


run_row = row_of(
    RUN_COLUMNS,
    id=lambda run, _: whole_id_cell(run.id),
    created="created_at",
    took=lambda run, now: span_cell(run.started_at, run.finished_at, now),
    attempt=lambda run, _: Cell(str(run.attempt), f"{run.attempt}/{run.max_attempts}"),
)
_facts = facts_of(
    "id state reason cancelled_by job queue priority scope key schedule because plan_time covers_from missed_count"
    " attempt created_at run_at started_at finished_at took fence wait_since wait_until worker retry_of replica_of tags"
    " metadata payload result fingerprint error",
    job=lambda run, _: Cell(run.job, f"{run.job} (version {run.job_version})"),
    because=_because,
    missed_count=lambda run, _: run.missed_count or None,
    attempt=lambda run, _: f"{run.attempt}/{run.max_attempts}",
    took=lambda run, now: span_cell(run.started_at, run.finished_at, now),
    worker="worker_id",
    replica_of="parent_id",
    metadata=lambda run, _: run.metadata or None,
    payload=lambda run, _: json_cell(run.payload),
    result=lambda run, _: json_cell(run.result),
    fingerprint=lambda run, _: run.error and run.error.fingerprint,
    error=lambda run, _: _error_cell(run.error),
)


def run_facts(run: Run, now: datetime) -> list[tuple[str, Cell]]:
    """Return facts of a run. The fence is one only of a run that waits for somebody who has to name it."""
    return [fact for fact in _facts(run, now) if fact[0] != "fence" or run.wait_until]


attempt_row = row_of(
    ATTEMPT_COLUMNS,
    attempt="no",
    outcome=lambda attempt, _: attempt.outcome or "running",
    worker="worker_id",
    claimed="claimed_at",
    took=lambda attempt, now: span_cell(attempt.started_at or attempt.claimed_at, attempt.ended_at, now),
    error=lambda attempt, _: Cell(error_line(attempt.error) if attempt.error else "", style="red"),
    measured=_measured,
)


def _replica_state(replica: Replica, _: datetime) -> Cell:
    state = state_cell(replica.state)
    cleared = Cell(f"{state.plain} (cleared)", f"{state.shown or state.plain} (cleared)")
    return cleared if replica.cleared else state


replica_row = row_of(
    REPLICA_COLUMNS,
    worker=lambda replica, _: replica.worker or "any worker",
    state=_replica_state,
    run="run_id",
    error=lambda replica, _: Cell(replica.error or "", style="red"),
)
related_row = row_of(RELATED_COLUMNS, state=lambda run, _: _PRUNED if run.state is None else run.state)


def member_row(run: FamilyRun, before: Sequence[str]) -> list[Cell]:
    state = _PRUNED if run.state is None else state_cell(run.state)
    return [text_cell(run.id), state, text_cell(run.job), text_cell(", ".join(before))]


def print_run(run: Run, *, as_json: bool) -> None:
    """Print a run that a command changed: its id and state, or all of it as JSON."""
    if as_json:
        print_json(run)
    elif on_terminal():
        print_rows(_CHANGED_RUN_COLUMNS, [_changed_row(run, run.created_at)], none="")
    else:
        emit(f"{run.id}\t{run.state.value}")


def print_new_run(run: Run, *, as_json: bool) -> None:
    """Print a new run; in a pipe its id alone, for `ID=$(rota run enqueue …)`."""
    if as_json or on_terminal():
        print_run(run, as_json=as_json)
    else:
        emit(run.id)
