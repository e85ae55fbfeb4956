"""Notes of a run in progress (progress, log lines, steps), as they are written and as they are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.core.progress.steps import Step, StepState, share_of
from rota.core.states import RunState
from rota.errors import Invalid

LONGEST_LINE = 8_000
MOST_LINES = 10_000
LONGEST_LOGGER = 200
LONGEST_SUMMARY = 500
_WHOLE = 100


class ProgressNote(msgspec.Struct, frozen=True):
    """Progress as written; `done` is in hundredths of a percent."""

    run_id: str
    fence: int
    done: int | None
    summary: str | None


class StepNote(msgspec.Struct, frozen=True):
    """State of a step as written. `age`: microseconds since it began, at `taken_at`. `result` and `error` are JSON."""

    run_id: str
    fence: int
    attempt: int
    id: str
    no: int
    state: StepState
    age: int | None = None
    done: int | None = None
    summary: str | None = None
    result: str | None = None
    error: str | None = None
    taken_at: float | None = None


class LogNote(msgspec.Struct, frozen=True):
    """Batch of log lines of an attempt, numbered `no`; `drops` are numbers of batches that make room for it.

    `taken_at` (monotonic) is when the ages of its lines were taken. It may wait long before it is written.
    """

    run_id: str
    fence: int
    attempt: int
    no: int
    lines: str
    drops: tuple[int, ...] = ()
    taken_at: float | None = None


class Notes(msgspec.Struct, frozen=True):
    progress: tuple[ProgressNote, ...] = ()
    steps: tuple[StepNote, ...] = ()
    logs: tuple[LogNote, ...] = ()

    @property
    def leases(self) -> list[tuple[str, int]]:
        """Leases (run id, fence) under which they are written, each once, sorted."""
        notes: list[ProgressNote | StepNote | LogNote] = [*self.progress, *self.steps, *self.logs]
        return sorted({(note.run_id, note.fence) for note in notes})

    def under(self, current: set[tuple[str, int]]) -> Notes:
        """Return the notes whose lease is in `current`."""
        return Notes(
            tuple(note for note in self.progress if (note.run_id, note.fence) in current),
            tuple(note for note in self.steps if (note.run_id, note.fence) in current),
            tuple(note for note in self.logs if (note.run_id, note.fence) in current),
        )


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of a run as it reports it. `steps` are left out in lists of runs."""

    percentage: float | None
    summary: str | None
    at: datetime | None
    """When it was reported."""
    steps: Sequence[Step] = ()


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """Log line; `cursor` is where to continue reading after it."""

    at: datetime
    level: str
    logger: str
    text: str
    attempt: int
    fence: int
    cursor: str


RawLine = tuple[int, int, str, str]
"""Log line as stored: age in microseconds, level, logger, text."""

_LEVELS = {10: "debug", 20: "info", 30: "warning", 40: "error", 50: "critical"}


def level_name(level: int) -> str:
    """Return the highest level that the number reaches; `logging` allows numbers in between."""
    reached = [name for number, name in _LEVELS.items() if level >= number]
    return reached[-1] if reached else "debug"


def level_of(name: object) -> int:
    for number, level in _LEVELS.items():
        if name == level:
            return number
    raise Invalid(f"a level is one of {', '.join(_LEVELS.values())}, not {name!r:.40}")


def hundredths(percentage: object) -> int:
    if isinstance(percentage, bool) or not isinstance(percentage, int | float) or not math.isfinite(percentage):
        raise Invalid(f"progress is a number from 0 to 100, not {percentage!r:.80}")
    if not 0 <= percentage <= _WHOLE:
        raise Invalid(f"progress is from 0 to 100, not {percentage!r:.80}")
    return round(percentage * 100)


def progress_of(reported: Progress | None, steps: Sequence[Step], state: RunState) -> Progress:
    """Combine the reported progress with that of the steps and of the run's state."""
    percentage = reported.percentage if reported else None
    if state is RunState.SUCCEEDED:
        percentage = 100.0
    elif percentage is None:
        percentage = share_of(steps)
    return Progress(
        percentage=percentage,
        summary=reported.summary if reported else None,
        at=reported.at if reported else None,
        steps=steps,
    )


def percentage_of(done: int | None) -> float | None:
    return None if done is None else done / 100


def storable(text: object, longest: int) -> str:
    """Shorten `text`, and replace characters that a database would refuse (NUL, unpaired surrogates)."""
    words = text if isinstance(text, str) else str(text)
    if len(words) > longest:
        words = f"{words[:longest]}… ({len(words) - longest} more characters)"
    return words.encode("utf-8", "replace").decode().replace("\x00", "�")


def encoded(lines: Iterable[RawLine]) -> str:
    return msgspec.json.encode(list(lines)).decode()


def decoded(text: str) -> list[RawLine]:
    return [tuple(line) for line in msgspec.json.decode(text, type=list[Any])]
