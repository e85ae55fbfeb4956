"""The page of a run in `rota top`: the output of `rota run get` as lines to scroll."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from rota.cli.terminal.format import Cell, Columns, visible
from rota.cli.terminal.progress import STEP_COLUMNS, RunSnapshot, progress_facts, related_facts, step_row
from rota.cli.terminal.run_format import ATTEMPT_COLUMNS, attempt_row, run_facts
from rota.cli.terminal.tables import lines_of


def run_lines(snapshot: RunSnapshot, console: Console, width: int) -> list[Text]:
    facts = [*run_facts(snapshot.run, snapshot.at), *related_facts(snapshot), *progress_facts(snapshot)]
    steps = [step_row(step, snapshot.at) for step in snapshot.progress.steps]
    attempts = [attempt_row(attempt, snapshot.at) for attempt in snapshot.attempts]
    return [
        *_facts([(name, cell) for name, cell in facts if cell.plain or cell.shown], console, width),
        *_table(STEP_COLUMNS, steps, console, width),
        *_table(ATTEMPT_COLUMNS, attempts, console, width),
    ]


def _facts(facts: Sequence[tuple[str, Cell]], console: Console, width: int) -> list[Text]:
    names = max(len(name) for name, _ in facts) + 2
    lines = []
    for name, cell in facts:
        for at, value in enumerate(_wrapped(cell, console, width - names)):
            lines.append(Text.assemble((("" if at else name).ljust(names), "dim"), value))
    return lines


def _table(columns: Columns, rows: Sequence[Sequence[Cell]], console: Console, width: int) -> list[Text]:
    if not rows:
        return []
    head, *lines = lines_of(columns, rows, width)
    head.stylize("bold")
    table = [Text(), head]
    for line, row in zip(lines, rows, strict=True):
        cells = dict(zip(columns.titles, row, strict=True))
        table.append(line)
        for title in columns.below:
            if cells[title].plain or cells[title].shown:
                table += [Text("    ").append_text(part) for part in _wrapped(cells[title], console, width - 4)]
    return table


def _wrapped(cell: Cell, console: Console, width: int) -> list[Text]:
    text = Text(visible(cell.plain if cell.shown is None else cell.shown), style=cell.style)
    return list(text.wrap(console, max(1, width), overflow="fold"))
