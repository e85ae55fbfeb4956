"""Formats of schedules and their plan times, as rows and facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from rota.cli.terminal.cells import json_cell, row_of
from rota.cli.terminal.format import Cell, Columns, instant_cell, rfc3339, state_cell, text_cell
from rota.cli.terminal.output import emit, json_text, on_terminal, print_rows
from rota.core.calendar.describe import describe
from rota.core.runs.run import Run
from rota.core.schedules.documents import TRIGGER_KEYS, document_of
from rota.core.schedules.plan_times import Fire, zone_of
from rota.core.schedules.schedule import Schedule
from rota.core.schedules.view import policies
from rota.values.durations import age

SCHEDULE_COLUMNS = Columns(
    ("name", "state", "rule", "next", "last", "job", "notes"),
    cut=("name", "rule", "last", "job"),
    wide=("rule", "last"),
    spare=("job",),
    below=("notes",),
)
FIRE_COLUMNS = Columns(("local", "utc", "marks"), cut=("marks",))
CHANGED_COLUMNS = Columns(("name", "state", "next", "job", "notes"), cut=("name", "job"), below=("notes",))
_SYMBOLS = {
    "active": ("◷", "green"),
    "paused": ("⏸", "yellow"),
    "job paused": ("⏸", "yellow"),
    "job cancelled": ("⏸", "yellow"),
    "disabled": ("○", "yellow"),
    "ended": ("■", "blue"),
}
_SHOWN_OTHERWISE = {
    "name", "job", *TRIGGER_KEYS, "payload", "scopes", "description", "catch_up", "overlap", "failure",
    "max_concurrency", "when_full", "max_queued", "expect",
}  # fmt: skip
_SOON, _WEEK = timedelta(hours=1), timedelta(days=7)
_MARKS = {
    "gap": "moved: clocks skip the time",
    "fold-first": "first of two equal local times",
    "fold-second": "second of two equal local times",
    "transition": "clocks changed",
}


def schedule_row(schedule: Schedule, last: Run | None, now: datetime) -> list[Cell]:
    return [
        text_cell(schedule.name),
        schedule_state_cell(schedule),
        text_cell(describe(schedule.definition.rule, schedule.name)),
        soon_cell(schedule, now),
        last_cell(last, now),
        text_cell(schedule.job),
        notes_cell(schedule, now),
    ]


def schedule_state_cell(schedule: Schedule) -> Cell:
    symbol, colour = _SYMBOLS[schedule.state]
    return Cell(schedule.state, f"{symbol} {schedule.state}", colour)


def next_cell(schedule: Schedule, now: datetime) -> Cell:
    at = schedule.next_plan
    if at is None and schedule.state == "active" and (ends := schedule.definition.awaited) is not None:
        return Cell("", f"at the next {ends.on} of {ends.job}")
    if at is None:
        return Cell("", f"when run …{schedule.awaits[-6:]} has ended") if schedule.awaits else Cell("")
    zone = ZoneInfo(zone_of(schedule.definition))
    local = at.astimezone(zone)
    shown = wall_time(local) if local.date() != now.astimezone(zone).date() else wall_time(local)[11:]
    return Cell(rfc3339(at), f"{shown} ({age(at, now)})")


def soon_cell(schedule: Schedule, now: datetime) -> Cell:
    """Return the next plan time in a short form, for lists: `in 5m`, `14:30 CET`, `Tue 14:30 CET`, `2030-12-24`."""
    at = schedule.next_plan
    if at is None:
        return next_cell(schedule, now)
    zone = ZoneInfo(zone_of(schedule.definition))
    local, today = at.astimezone(zone), now.astimezone(zone).date()
    if at - now < _SOON:
        return Cell(rfc3339(at), age(at, now))
    if local.date() - today >= _WEEK:
        return Cell(rfc3339(at), f"{local:%Y-%m-%d}")
    return Cell(rfc3339(at), f"{local:%H:%M %Z}" if local.date() == today else f"{local:%a %H:%M %Z}")


def local_time(at: datetime, schedule: Schedule) -> str:
    return wall_time(at.astimezone(ZoneInfo(zone_of(schedule.definition))))


def wall_time(local: datetime) -> str:
    """Format a local time, without seconds if they are zero."""
    return f"{local:%Y-%m-%d %H:%M:%S %Z}" if local.second else f"{local:%Y-%m-%d %H:%M %Z}"


def last_cell(run: Run | None, now: datetime) -> Cell:
    if run is None:
        return Cell("")
    state = state_cell(run.state)
    at = run.finished_at or run.started_at or run.run_at
    return Cell(run.state.value, f"{state.shown} {age(at, now)}", state.style)


def notes_cell(schedule: Schedule, now: datetime) -> Cell:
    """Return what keeps the schedule from running, or might: pauses and trouble. Programs get times in UTC."""
    shown = _notes(schedule, now, lambda at: local_time(at, schedule))
    return Cell(_notes(schedule, now, rfc3339), shown, "yellow")


def _notes(schedule: Schedule, now: datetime, written: Callable[[datetime], str]) -> str:
    parts = []
    if schedule.paused_at is not None:
        by = f" by {schedule.paused_by}" if schedule.paused_by else ""
        until = f", until {written(schedule.resume_at)}" if schedule.resume_at else ""
        why = f": {schedule.pause_reason}" if schedule.pause_reason else ""
        parts.append(f"paused {age(schedule.paused_at, now)}{by}{until}{why}")
    if schedule.job_paused:
        parts.append(f"job {schedule.job} is {'cancelled' if schedule.job_cancelled else 'paused'}")
    if schedule.trouble:
        parts.append(f"trouble: {schedule.trouble}")
    return "; ".join(parts)


def schedule_facts(schedule: Schedule, now: datetime) -> list[tuple[str, Cell]]:
    definition = schedule.definition
    document = document_of(schedule.name, definition)
    trigger = {key: document[key] for key in TRIGGER_KEYS if key in document}
    others = {key: value for key, value in document.items() if key not in _SHOWN_OTHERWISE}
    return [
        ("name", text_cell(schedule.name)),
        ("state", schedule_state_cell(schedule)),
        ("notes", notes_cell(schedule, now)),
        ("rule", text_cell(describe(definition.rule, schedule.name))),
        ("trigger", text_cell(json_text(trigger))),
        ("next_plan", next_cell(schedule, now)),
        ("job", text_cell(schedule.job)),
        ("payload", json_cell(document.get("payload"))),
        ("scopes", _scopes_cell(document.get("scopes"))),
        *((name, text_cell(sentence)) for name, sentence in policies(definition)),
        *((key, _value_cell(value)) for key, value in others.items()),
        ("description", text_cell(definition.description)),
        ("owner", text_cell(schedule.owner)),
        ("revision", text_cell(schedule.revision)),
        ("fired", text_cell(schedule.fired)),
        ("created_at", instant_cell(schedule.created_at, now)),
        ("updated_at", instant_cell(schedule.updated_at, now)),
    ]


def _scopes_cell(scopes: str | list[Any] | None) -> Cell:
    if isinstance(scopes, str):
        return Cell(scopes, f"from provider {scopes}")
    return text_cell(", ".join(scope if isinstance(scope, str) else "/".join(scope) for scope in scopes or ()))


def _value_cell(value: object) -> Cell:
    return text_cell(value if isinstance(value, str) else json_text(value))


def fire_row(fire: Fire, now: datetime) -> list[Cell]:
    marks = "; ".join(_MARKS[mark] for mark in fire.marks)
    return [
        Cell(fire.local.isoformat(), wall_time(fire.local)),
        Cell(rfc3339(fire.plan_time), f"{fire.plan_time:%Y-%m-%d %H:%M:%S}Z ({age(fire.plan_time, now)})"),
        Cell(",".join(fire.marks), marks, "yellow"),
    ]


def print_fires(fires: Sequence[Fire], now: datetime, *, none: str) -> None:
    print_rows(FIRE_COLUMNS, [fire_row(fire, now) for fire in fires], none=none)


changed_row = row_of(
    CHANGED_COLUMNS,
    state=lambda schedule, _: schedule_state_cell(schedule),
    next=next_cell,
    notes=notes_cell,
)
"""Row of a schedule that a command changed."""


def print_heading(text: str) -> None:
    """Print a heading between two parts of the output, on a terminal only."""
    if on_terminal():
        emit(f"\n{text}")
