"""Formats of runs, attempts and replicas, as rows and facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rota.cli.terminal.format import Cell, Columns, age_cell, instant_cell, span_cell, state_cell, text_cell
from rota.cli.terminal.output import emit, json_text, on_terminal, print_json, print_rows
from rota.core.ledger.family import FamilyRun
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.run import Attempt, Measures, Run, RunError
from rota.core.schedules.job_triggers import because, cause_of
from rota.core.workers.replicas import Replica
from rota.values.scope import scope_text

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


def run_row(run: Run, now: datetime) -> list[Cell]:
    return [
        text_cell(run.id),
        state_cell(run.state),
        text_cell(run.job),
        age_cell(run.created_at, now),
        span_cell(run.started_at, run.finished_at, now),
        Cell(str(run.attempt), f"{run.attempt}/{run.max_attempts}"),
        text_cell(run.queue),
    ]


def run_facts(run: Run, now: datetime) -> list[tuple[str, Cell]]:
    version = f"{run.job} (version {run.job_version})"
    return [
        ("id", text_cell(run.id)),
        ("state", state_cell(run.state)),
        ("reason", text_cell(run.reason)),
        ("cancelled_by", text_cell(run.cancelled_by)),
        ("job", Cell(run.job, version)),
        ("queue", text_cell(run.queue)),
        ("priority", text_cell(run.priority)),
        ("scope", text_cell(scope_text(run.scope))),
        ("key", text_cell(run.key)),
        ("schedule", text_cell(run.schedule)),
        ("because", _because_cell(run)),
        ("plan_time", instant_cell(run.plan_time, now)),
        ("covers_from", instant_cell(run.covers_from, now)),
        ("missed_count", text_cell(run.missed_count or None)),
        ("attempt", text_cell(f"{run.attempt}/{run.max_attempts}")),
        ("created_at", instant_cell(run.created_at, now)),
        ("run_at", instant_cell(run.run_at, now)),
        ("started_at", instant_cell(run.started_at, now)),
        ("finished_at", instant_cell(run.finished_at, now)),
        ("took", span_cell(run.started_at, run.finished_at, now)),
        *([("fence", text_cell(run.fence))] if run.wait_until else []),
        ("wait_since", instant_cell(run.wait_since, now)),
        ("wait_until", instant_cell(run.wait_until, now)),
        ("worker", text_cell(run.worker_id)),
        ("retry_of", text_cell(run.retry_of)),
        ("replica_of", text_cell(run.parent_id)),
        ("tags", text_cell(", ".join(run.tags))),
        ("metadata", _json_cell(run.metadata or None)),
        ("payload", _json_cell(run.payload)),
        ("result", _json_cell(run.result)),
        ("fingerprint", text_cell(run.error.fingerprint if run.error else None)),
        ("error", _error_cell(run.error)),
    ]


def attempt_row(attempt: Attempt, now: datetime) -> list[Cell]:
    return [
        text_cell(attempt.no),
        text_cell(attempt.outcome.value if attempt.outcome else "running"),
        text_cell(attempt.worker_id),
        age_cell(attempt.claimed_at, now),
        span_cell(attempt.started_at or attempt.claimed_at, attempt.ended_at, now),
        Cell(error_line(attempt.error) if attempt.error else "", style="red"),
        _measured_cell(attempt),
    ]


def replica_row(replica: Replica, _: datetime) -> list[Cell]:
    state = state_cell(replica.state)
    cleared = Cell(f"{state.plain} (cleared)", f"{state.shown or state.plain} (cleared)")
    return [
        text_cell(replica.worker or "any worker"),
        cleared if replica.cleared else state,
        text_cell(replica.attempt),
        text_cell(replica.run_id),
        Cell(replica.error or "", style="red"),
    ]


def member_row(run: FamilyRun, before: Sequence[str]) -> list[Cell]:
    state = Cell("", "pruned") if run.state is None else state_cell(run.state)
    return [text_cell(run.id), state, text_cell(run.job), text_cell(", ".join(before))]


def related_row(run: RelatedRun, _: datetime) -> list[Cell]:
    state = Cell("", "pruned") if run.state is None else state_cell(run.state)
    return [text_cell(run.id), state, text_cell(run.job), text_cell(run.on), text_cell(run.otherwise)]


def _measured_cell(attempt: Attempt) -> Cell:
    measures = Measures(attempt.cpu_time_ms, attempt.memory_peak_mb, attempt.counters)
    return Cell(json_text(measures), attempt.measured) if measures != Measures() else Cell("")


def error_line(error: RunError) -> str:
    return f"{error.type}: {error.message}"


def print_run(run: Run, *, as_json: bool) -> None:
    """Print a run that a command changed: its id and state, or all of it as JSON."""
    if as_json:
        print_json(run)
    elif on_terminal():
        state = state_cell(run.state)
        print_rows(_CHANGED_RUN_COLUMNS, [[text_cell(run.id), state, text_cell(run.job)]], none="")
    else:
        emit(f"{run.id}\t{run.state.value}")


def print_new_run(run: Run, *, as_json: bool) -> None:
    """Print a new run; in a pipe its id alone, for `ID=$(rota run enqueue …)`."""
    if as_json or on_terminal():
        print_run(run, as_json=as_json)
    else:
        emit(run.id)


def _because_cell(run: Run) -> Cell:
    cause = cause_of(run.metadata)
    return Cell("") if cause is None else text_cell(because(cause).removeprefix("because "))


def _json_cell(value: object) -> Cell:
    return Cell("") if value is None else Cell(json_text(value), json_text(value, indent=2))


def _error_cell(error: RunError | None) -> Cell:
    if error is None:
        return Cell("")
    return Cell(error_line(error), (error.traceback or error_line(error)).rstrip(), "red")
