"""Live view of a run on a terminal, redrawn in place until it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from rota.cli.terminal.format import Cell, one_line, state_cell, visible
from rota.cli.terminal.progress import RunSnapshot, bar, busy_with, percent, step_row
from rota.cli.terminal.run_format import error_line
from rota.cli.terminal.tables import terminal
from rota.core.progress.steps import Step, StepState
from rota.core.states import RunState
from rota.values.durations import age, span

_BAR = 30
_OTHER_LINES = 10
_LONGEST_NAME = 30
_OVER = (StepState.SUCCEEDED, StepState.SKIPPED)


class Screen:
    """Live view of a run. The last picture stays on the terminal."""

    def __init__(self) -> None:
        self._console = terminal()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._last: RunSnapshot | None = None

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.stop()
        if self._last:
            self._console.print(_frame(self._last, len(self._last.progress.steps)))

    def show(self, snapshot: RunSnapshot) -> None:
        self._last = snapshot
        room = max(3, self._console.height - _OTHER_LINES - len(snapshot.attempts[-3:]))
        self._live.update(_frame(snapshot, room), refresh=True)


def _frame(snapshot: RunSnapshot, room: int) -> Group:
    run, progress = snapshot.run, snapshot.progress
    state = state_cell(run.state)
    head = _line((state.shown or "", f"bold {state.style}"), (run.job, "bold"), (run.id, "dim"))
    far = _line(
        (bar(progress.percentage, _BAR), state.style), (percent(progress.percentage), ""), (_words(snapshot), "")
    )
    began = run.started_at or run.created_at
    length = span((run.finished_at or snapshot.at) - began)
    tries = _line((f"attempt {run.attempt}/{run.max_attempts}", ""), (length, ""), (run.worker_id or "", "dim"))
    return Group(head, far, tries, *_attempts(snapshot), *_steps(progress.steps, snapshot, room))


def _words(snapshot: RunSnapshot) -> str:
    if snapshot.run.state is RunState.SCHEDULED and snapshot.run.run_at > snapshot.at:
        return f"due {age(snapshot.run.run_at, snapshot.at)}"
    return busy_with(snapshot.progress, snapshot.run.state)


def _attempts(snapshot: RunSnapshot) -> list[Text]:
    """Return lines for the last failed attempts."""
    failed = [attempt for attempt in snapshot.attempts if attempt.outcome and attempt.error]
    return [
        _line((f"  {attempt.no} {attempt.outcome.replace('_', ' ')}", "red"), (error_line(attempt.error), "red"))
        for attempt in failed[-3:]
        if attempt.outcome and attempt.error
    ]


def _steps(steps: Sequence[Step], snapshot: RunSnapshot, room: int) -> list[Text]:
    """Return lines for as many steps as fit, around the first that is not done."""
    if not steps:
        return []
    first = next((place for place, step in enumerate(steps) if step.state not in _OVER), len(steps))
    start = max(0, min(first - room // 3, len(steps) - room))
    shown = steps[start : start + room]
    rows = [step_row(step, snapshot.at) for step in shown]
    name_width = min(_LONGEST_NAME, max(Text(_shown(row[0])).cell_len for row in rows))
    lines = [_step(row, name_width) for row in rows]
    before, behind = start, len(steps) - start - len(shown)
    lines = [Text(f"  … {before} before", style="dim"), *lines] if before else lines
    return [Text(""), *lines, *([Text(f"  … {behind} more", style="dim")] if behind else [])]


def _step(row: Sequence[Cell], name_width: int) -> Text:
    name, state, took, _, done, summary, error = row
    named = Text(_shown(name))
    named.truncate(name_width, overflow="ellipsis", pad=True)
    still_going = state.plain == StepState.RUNNING
    return _line(
        (f"{_shown(state):<11}", state.style),
        (named.plain, ""),
        (f"{_shown(took):<6}", "dim"),
        (_shown(done) if still_going else "", ""),
        (_shown(error) or _shown(summary), error.style if error.plain else ""),
    )


def _shown(cell: Cell) -> str:
    return one_line(cell.plain if cell.shown is None else cell.shown)


def _line(*parts: tuple[str, str]) -> Text:
    """Join the parts to one line, which is cut at the terminal's width."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for words, style in parts:
        if words:
            line.append("  " if line else "").append(visible(words.replace("\n", " ").replace("\t", " ")), style=style)
    line.rstrip()
    return line
