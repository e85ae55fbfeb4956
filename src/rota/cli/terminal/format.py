"""Formats of values on a terminal: states with a symbol, times, text without control characters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from rota.core.jobs.status import JobState
from rota.core.progress.steps import StepState
from rota.core.states import RunState
from rota.core.workers.worker import WorkerState
from rota.values.durations import age, span

_SYMBOLS = {
    RunState.SCHEDULED: ("◷", "blue"),
    RunState.QUEUED: ("○", "blue"),
    RunState.RUNNING: ("▶", "cyan"),
    RunState.WAITING: ("◔", "cyan"),
    RunState.CANCELLING: ("◌", "yellow"),
    RunState.SUCCEEDED: ("✓", "green"),
    RunState.FAILED: ("✗", "red"),
    RunState.TIMED_OUT: ("⧖", "red"),
    RunState.CANCELLED: ("⊘", "yellow"),
    RunState.EXPIRED: ("†", "red"),
    RunState.SKIPPED: ("↷", "yellow"),
}
_JOB_SYMBOLS = {
    JobState.PENDING: ("·", "blue"),
    JobState.SCHEDULED: ("◷", "blue"),
    JobState.RUNNING: ("▶", "cyan"),
    JobState.PAUSED: ("⏸", "yellow"),
    JobState.COMPLETED: ("✓", "green"),
    JobState.FAILED: ("✗", "red"),
    JobState.CANCELLED: ("⊘", "yellow"),
}
_STEP_SYMBOLS = {
    StepState.PENDING: ("○", "blue"),
    StepState.RUNNING: ("▶", "cyan"),
    StepState.SUCCEEDED: ("✓", "green"),
    StepState.FAILED: ("✗", "red"),
    StepState.SKIPPED: ("↷", "yellow"),
    StepState.CANCELLED: ("⊘", "yellow"),
}
_ENOUGH_OF_AN_ID = 8
_BARS = "▁▂▃▄▅▆▇█"
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_IN_A_CELL = {**_CONTROLS, ord("\\"): "\\\\", ord("\n"): "\\n", ord("\t"): "\\t"}


class Cell(msgspec.Struct, frozen=True):
    """One value: `plain` for programs, `shown` (if it differs) in `style` for people."""

    plain: str
    shown: str | None = None
    style: str = ""
    brief: str | None = None
    """What is shown instead in a table that would have to leave columns out."""


class Columns(msgspec.Struct, frozen=True):
    """Titles of a table, and how it adapts to a narrow terminal.

    `cut` columns are shortened with …, the `wide` ones among them less. Then `spare` columns are left out, the last
    one first, and named below the table. `below` columns are printed under their row, if they are not empty. In a pipe
    all columns are tab-separated fields.
    """

    titles: tuple[str, ...]
    cut: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


def visible(text: str) -> str:
    """Escape control characters: an error message or a payload must not move the cursor or set a title."""
    return text.translate(_CONTROLS)


def one_field(text: str) -> str:
    return text.translate(_IN_A_CELL)


def one_line(text: str) -> str:
    """Return the text as one line, without control characters."""
    return visible(" ".join(text.split()))


def chart(counts: Sequence[int]) -> str:
    """Return a bar for each count, and a space for zero."""
    most = max(counts, default=0)
    return "".join(_BARS[(count * (len(_BARS) - 1) + most - 1) // most] if count else " " for count in counts)


def text_cell(text: object) -> Cell:
    return Cell("" if text is None else str(text))


def run_id_cell(id: str | None) -> Cell:
    """Return the id; on a terminal only its end, which commands accept."""
    return Cell("") if id is None else Cell(id, short_id(id))


def whole_id_cell(id: str) -> Cell:
    """Return the id of a run, whole as long as the table has room for all its columns."""
    return Cell(id, brief=short_id(id))


def short_id(id: str) -> str:
    return id[-_ENOUGH_OF_AN_ID:]


def state_cell(state: RunState) -> Cell:
    symbol, colour = _SYMBOLS[state]
    return Cell(state.value, f"{symbol} {state.value.replace('_', ' ')}", colour)


def job_state_cell(state: JobState) -> Cell:
    symbol, colour = _JOB_SYMBOLS[state]
    return Cell(state.value, f"{symbol} {state.value}", colour)


def step_state_cell(state: StepState) -> Cell:
    symbol, colour = _STEP_SYMBOLS[state]
    return Cell(state.value, f"{symbol} {state.value}", colour)


def rfc3339(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def age_cell(at: datetime | None, now: datetime) -> Cell:
    return Cell("") if at is None else Cell(rfc3339(at), age(at, now))


def instant_cell(at: datetime | None, now: datetime) -> Cell:
    return Cell("") if at is None else Cell(rfc3339(at), f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({age(at, now)})")


def time_cell(at: datetime) -> Cell:
    """Return the time without its age, for lists in which that matters less."""
    return Cell(rfc3339(at), f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


def span_cell(began: datetime | None, ended: datetime | None, now: datetime) -> Cell:
    """Return how long something took; if it has not ended, how long so far, for people only."""
    if began is None:
        return Cell("")
    if ended is None:
        return Cell("", span(now - began))
    return Cell(f"{(ended - began).total_seconds():.3f}", span(ended - began))


_WORKER_SYMBOLS = {
    WorkerState.WORKING: ("▶", "green"),
    WorkerState.DRAINING: ("◌", "yellow"),
    WorkerState.STOPPING: ("■", "yellow"),
    WorkerState.GONE: ("†", "red"),
}


def worker_state_cell(state: WorkerState) -> Cell:
    symbol, colour = _WORKER_SYMBOLS[state]
    return Cell(state.value, f"{symbol} {state.value}", colour)
