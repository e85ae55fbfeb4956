"""Cells of what verbs answer: by the type of each value, or as a table says of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from operator import attrgetter
from typing import Any

import msgspec

from rota.cli.terminal.format import (
    Cell,
    Columns,
    age_cell,
    instant_cell,
    job_state_cell,
    state_cell,
    step_state_cell,
    text_cell,
    worker_state_cell,
)
from rota.cli.terminal.output import json_text
from rota.core.jobs.status import JobState
from rota.core.progress.steps import StepState
from rota.core.states import RunState
from rota.core.workers.worker import WorkerState
from rota.values.durations import format_duration
from rota.values.scope import Scope, scope_text

Reader = str | Callable[[Any, datetime], object]
"""How a value is read: the name of an attribute, with dots below another, or a function of the object and now."""
Row = Callable[[Any, datetime], list[Cell]]
Facts = Callable[[Any, datetime], list[tuple[str, Cell]]]


def row_of(columns: Columns, **readers: Reader) -> Row:
    """Return how an object becomes a row: a cell for each title, of the attribute with its name unless a reader is
    given. Times are shown by their age."""
    names = [title.replace(" ", "_") for title in columns.titles]
    read = [_reader(readers.get(name, name)) for name in names]
    return lambda item, now: [_cell(each(item, now), now, age_cell) for each in read]


def facts_of(names: str, **readers: Reader) -> Facts:
    """Return how an object becomes facts, in the order of `names`: `facts_of("id state host", host="node.name")`."""
    read = {name: _reader(readers.get(name, name)) for name in names.split()}
    return lambda item, now: [(name, _cell(each(item, now), now, instant_cell)) for name, each in read.items()]


def _reader(reader: Reader) -> Callable[[Any, datetime], object]:
    if not isinstance(reader, str):
        return reader
    read = attrgetter(reader)
    return lambda item, _: read(item)


def _cell(value: object, now: datetime, time_cell: Callable[[datetime, datetime], Cell]) -> Cell:
    if isinstance(value, datetime):
        return time_cell(value, now)
    return next((cell(value) for kinds, cell in _CELLS if isinstance(value, kinds)), text_cell(value))


def json_cell(value: object) -> Cell:
    """Return any value as JSON, for people in several lines."""
    return Cell("") if value is None else Cell(json_text(value), json_text(value, indent=2))


def yes_cell(is_so: bool, style: str, otherwise: str = "") -> Cell:
    """Return yes or no, in one style or the other."""
    return Cell("yes", "yes", style) if is_so else Cell("no", "no", otherwise)


_CELLS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Cell]], ...] = (
    (Cell, lambda cell: cell),
    (RunState, state_cell),
    (JobState, job_state_cell),
    (StepState, step_state_cell),
    (WorkerState, worker_state_cell),
    (Enum, lambda member: Cell(str(member.value))),
    (bool, lambda is_so: Cell("yes" if is_so else "no")),
    (timedelta, lambda span: Cell(format_duration(span))),
    (Scope, lambda scope: Cell(scope_text(scope))),
    ((list, tuple), lambda items: Cell(", ".join(map(str, items)))),
    (Mapping, json_cell),
    (msgspec.Struct, lambda value: Cell(json_text(value))),
)
"""Cells by type, the first that fits; anything else is its text."""
