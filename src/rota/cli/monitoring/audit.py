"""`rota run events`, `rota schedule events`, `rota audit`: events, with their time and actor."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from rota.cli.terminal.format import Cell, Columns, rfc3339, run_id_cell, state_cell, text_cell, time_cell
from rota.cli.terminal.output import json_text
from rota.cli.verbs.looks import table
from rota.cli.verbs.verb_command import verb_command
from rota.cli.verbs.verb_options import Word
from rota.client.monitoring.audit import AuditVerbs
from rota.client.runs.runs import RunVerbs
from rota.client.schedules.schedules import SchedulesClient
from rota.core.ledger.audit import KINDS, Event
from rota.core.states import RunState

_RUN_COLUMNS = Columns(
    ("at", "event", "from", "to", "fence", "by", "details"),
    cut=("by",),
    spare=("from", "fence"),
    below=("details",),
)
_SCHEDULE_COLUMNS = Columns(("at", "event", "by", "details"), cut=("by",), below=("details",))
_AUDIT_COLUMNS = Columns(
    ("seq", "at", "kind", "subject", "event", "by", "details"),
    cut=("subject", "by"),
    spare=("kind", "seq"),
    below=("details",),
)


def _row(event: Event, columns: Columns) -> list[Cell]:
    cells = {
        "seq": text_cell(event.seq),
        "at": time_cell(event.at),
        "kind": text_cell(event.kind),
        "subject": run_id_cell(event.subject) if event.kind == "run" else text_cell(event.subject),
        "event": Cell(event.type, event.type.replace("_", " ")),
        "from": _state_cell(event.from_state),
        "to": _state_cell(event.to_state),
        "fence": text_cell(event.fence),
        "by": text_cell(event.actor),
        "details": _details_cell(event.details),
    }
    return [cells[title] for title in columns.titles]


def _state_cell(state: RunState | None) -> Cell:
    return Cell("") if state is None else state_cell(state)


def _details_cell(details: dict[str, Any]) -> Cell:
    if not details:
        return Cell("")
    plain = msgspec.to_builtins(details)
    return Cell(json_text(plain), ", ".join(f"{key} {_shown(value)}" for key, value in details.items()))


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, dict) and value.keys() >= {"type", "message"}:
        return f"{value['type']}: {value['message']}"
    return value if isinstance(value, str) else json_text(value)


events = verb_command(
    "",
    RunVerbs.events,
    table(_RUN_COLUMNS, lambda event, _: _row(event, _RUN_COLUMNS), "no events"),
    "rota run events b3e52e11",
    "rota run events b3e52e11 --json",
    words="List the state changes of a run, with time and actor.\n\n"
    "ID is a run's id, or a unique beginning or end of it.",
)
schedule_events = verb_command(
    "schedules",
    SchedulesClient.events,
    table(_SCHEDULE_COLUMNS, lambda event, _: _row(event, _SCHEDULE_COLUMNS), "no events"),
    "rota schedule events news",
    "rota schedule events news --json",
    words="List the events of a schedule, with time and actor.\n\n"
    "A deleted schedule keeps its events until another one has its name.",
)
audit = verb_command(
    "",
    AuditVerbs.audit,
    table(_AUDIT_COLUMNS, lambda event, _: _row(event, _AUDIT_COLUMNS), "no events match"),
    "rota audit",
    "rota audit --actor cli:ann --kind schedule",
    "rota audit --subject news --limit 200 --json",
    words="List what people and policies did, newest first.\n\n"
    "On a terminal, runs are named by the end of their id, which every command accepts.",
    settings={
        "kind": {"type": Word(KINDS, open_ended=True), "help": "Only events of subjects of this kind."},
        "subject": {"metavar": "ID|NAME"},
    },
)
