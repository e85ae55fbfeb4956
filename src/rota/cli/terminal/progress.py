"""Progress of a run on a terminal: a bar, a percentage, what it is busy with, its steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rota.cli.terminal.cells import row_of
from rota.cli.terminal.format import Cell, Columns, span_cell, text_cell
from rota.cli.terminal.output import on_terminal
from rota.cli.terminal.run_format import error_line
from rota.client.client import Client
from rota.core.progress.notes import Progress, progress_of
from rota.core.progress.steps import Step, StepState
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.run import Attempt, Run, RunError
from rota.core.states import RunState

STEP_COLUMNS = Columns(
    ("step", "state", "took", "attempt", "done", "summary", "error"),
    cut=("step",),
    below=("summary", "error"),
)
_FULL, _EMPTY = "█", "░"
_WORKING = (RunState.RUNNING, RunState.CANCELLING)


class RunSnapshot(msgspec.Struct, frozen=True):
    """A run with its progress, attempts and related runs, read at one time."""

    run: Run
    progress: Progress
    attempts: Sequence[Attempt]
    at: datetime
    parents: Sequence[RelatedRun] = ()
    children: Sequence[RelatedRun] = ()

    @property
    def visible_state(self) -> object:
        """Return the values of which one must change for another line to be printed."""
        run, progress = self.run, self.progress
        steps = [(step.id, step.state, step.percentage, step.summary) for step in progress.steps]
        return run.state, run.attempt, progress.percentage, progress.summary, steps

    def document(self) -> Run:
        """Return the run as the API answers it. A run that reports nothing has no progress."""
        says_something = self.run.progress or self.progress.steps
        return msgspec.structs.replace(self.run, progress=self.progress if says_something else None)


async def read_run(client: Client, id: str) -> RunSnapshot:
    """Read a run, its progress and its attempts. The run comes first: what is read after its end is complete."""
    run = await client.get(id)
    progress = progress_of(run.progress, await client.steps(run.id), run.state)
    return RunSnapshot(run, progress, await client.attempts(run.id), await client.time())


async def read_with_relations(client: Client, id: str) -> RunSnapshot:
    """Read a run with the runs that it follows, and those that follow it."""
    snapshot = await read_run(client, id)
    parents, children = await client.parents(snapshot.run.id), await client.children(snapshot.run.id)
    return msgspec.structs.replace(snapshot, parents=parents, children=children)


def related_facts(snapshot: RunSnapshot) -> list[tuple[str, Cell]]:
    return [("after", _runs_cell(snapshot.parents)), ("followed_by", _runs_cell(snapshot.children))]


def _runs_cell(runs: Sequence[RelatedRun]) -> Cell:
    """Return the ids in a pipe, and a line for each run on a terminal."""
    lines = [f"{run.id}  {run.state or 'pruned'}  {run.job or ''}".rstrip() for run in runs]
    return Cell(", ".join(run.id for run in runs), "\n".join(lines))


def bar(percentage: float | None, width: int) -> str:
    """Draw a progress bar, which is full only at 100 %."""
    full = 0 if percentage is None else int(percentage * width / 100)
    return _FULL * full + _EMPTY * (width - full)


def percent(percentage: float | None) -> str:
    """Format a percentage, rounded down: 100 % would mean that the run is done."""
    return "" if percentage is None else f"{int(percentage)} %"


def busy_with(progress: Progress, state: RunState) -> str:
    """Return the open steps, and the summary of the run or else of a step."""
    running = [step for step in progress.steps if step.state is StepState.RUNNING] if state in _WORKING else []
    names = ", ".join(step.name or step.id for step in running[:3]) + (", …" if len(running) > 3 else "")
    summary = progress.summary or next((step.summary for step in running if step.summary), None)
    return ": ".join(part for part in (names, summary) if part)


def progress_facts(snapshot: RunSnapshot) -> list[tuple[str, Cell]]:
    """Return progress as facts. In a pipe they include the steps, which are a table on a terminal."""
    progress = snapshot.progress
    percentage = "" if progress.percentage is None else f"{progress.percentage:g}"
    words = [percent(progress.percentage), busy_with(progress, snapshot.run.state)]
    facts = [("progress", Cell(percentage, "  ".join(word for word in words if word)))]
    if on_terminal():
        return facts
    steps = ", ".join(f"{step.id} {step.state}" for step in progress.steps)
    return [*facts, ("summary", text_cell(progress.summary)), ("steps", Cell(steps))]


def _took(step: Step, now: datetime) -> Cell:
    """Return how long a step took. A step that was open when its attempt ended has no end of its own."""
    if step.kept_from is not None:
        return Cell("", "kept")
    if step.finished_at is None and step.state is not StepState.RUNNING:
        return Cell("")
    return span_cell(step.started_at, step.finished_at, now)


def step_error(error: RunError | None) -> Cell:
    return Cell("") if error is None else Cell(error_line(error), style="red")


step_row = row_of(
    STEP_COLUMNS,
    step=lambda step, _: Cell(step.id, f"{step.id} ({step.name})" if step.name else step.id),
    took=_took,
    done=lambda step, _: Cell("" if step.percentage is None else f"{step.percentage:g}", percent(step.percentage)),
    error=lambda step, _: step_error(step.error),
)
