"""Parts of `rota top` as rows: running, failed, queues, workers, next runs, and what needs attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from rich.text import Text

from rota.cli.terminal.format import (
    Cell,
    Columns,
    age_cell,
    run_id_cell,
    span_cell,
    state_cell,
    text_cell,
    worker_state_cell,
)
from rota.cli.terminal.progress import bar, busy_with, percent
from rota.cli.terminal.run_format import error_line
from rota.cli.terminal.tables import lines_of
from rota.cli.top.data import QueueNow, Snapshot
from rota.cli.top.keys import Row, View
from rota.core.monitoring.overview import Attention, NextRun
from rota.core.progress.notes import progress_of
from rota.core.runs.run import Run
from rota.core.workers.worker import Worker
from rota.values.durations import span

_BAR = 10
_HERE, _ELSEWHERE = "▸ ", "  "
_CHOSEN, _OTHER = "› ", "  "


class Pane(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the screen. `items` are what its rows are about; `none` is shown if there are none.

    `count` returns how many there are, if `items` may be only some of them.
    """

    title: str
    columns: Columns
    none: str
    items: Callable[[Snapshot], Sequence[Any]]
    row: Callable[[Any], Row]
    cells: Callable[[Any, datetime], list[Cell]]
    count: Callable[[Snapshot], int] | None = None


def rows_of(pane: str, seen: Snapshot) -> list[Row]:
    part = PARTS[pane]
    return [part.row(item) for item in part.items(seen)]


def drawn(name: str, seen: Snapshot, now: datetime, view: View, width: int, room: int) -> list[Text]:
    """Draw a part: a line for the title, and up to `room` rows around the selected one."""
    pane, here = PARTS[name], view.pane == name
    items = pane.items(seen)
    mark, style = (_HERE, "bold cyan") if here else (_ELSEWHERE, "bold")
    title = f"{pane.title} {pane.count(seen) if pane.count else len(items)}"
    if not items:
        said = Text(f"{mark}{title}", style=style)
        return [_cut(Text.assemble(said, (f"  {pane.none}", "dim")), width)]
    place = view.place(rows_of(name, seen)) if here else None
    start = _start(place, len(items), room)
    shown = items[start : start + room]
    cells = [pane.cells(item, now) for item in shown]  # only visible rows: a hundred would make keys sluggish
    head, *lines = lines_of(_titled(pane.columns, title), cells, width - len(mark))
    head.stylize(style)
    head = _with_more(Text(mark, style=style).append_text(head), start, len(items) - start - len(shown), width)
    return [head, *(_marked(line, width, chosen=at == place) for at, line in enumerate(lines, start))]


def _titled(columns: Columns, title: str) -> Columns:
    """Return the columns with the part's title as that of the first column."""
    first, *others = columns.titles
    cut, wide = (tuple(title if name == first else name for name in names) for names in (columns.cut, columns.wide))
    return Columns((title, *others), cut=cut, wide=wide, spare=columns.spare)


def _marked(line: Text, width: int, *, chosen: bool) -> Text:
    """Return a row; the selected one is inverted over the whole width."""
    if chosen:
        return _cut(Text(f"{_CHOSEN}{line.plain}", style="reverse"), width, pad=True)
    return _cut(Text(_OTHER).append_text(line), width)


def _start(place: int | None, count: int, room: int) -> int:
    if place is None or count <= room:
        return 0
    return max(0, min(place - room // 2, count - room))


def _with_more(head: Text, above: int, below: int, width: int) -> Text:
    words = "  ".join([*([f"↑{above}"] if above else []), *([f"↓{below}"] if below else [])])
    if not words:
        return _cut(head, width)
    head = _cut(head, width - len(words) - 2, pad=True)
    return head.append(f"  {words}", style="dim")


def _cut(line: Text, width: int, *, pad: bool = False) -> Text:
    line.truncate(max(1, width), overflow="ellipsis", pad=pad)
    return line


def _begun(seen: Snapshot) -> int:
    live = seen.overview.live
    return max(len(seen.runs), live.running + live.waiting + live.cancelling)


def _row_of(run: Run) -> Row:
    return Row(run.id, run.job)


def _run_cells(run: Run, now: datetime) -> list[Cell]:
    said = progress_of(run.progress, (), run.state)
    done = "" if said.percentage is None else f"{bar(said.percentage, _BAR)} {percent(said.percentage)}"
    return [
        run_id_cell(run.id),
        state_cell(run.state),
        text_cell(run.job),
        span_cell(run.started_at or run.created_at, None, now),
        Cell("", done, "cyan"),
        text_cell(run.worker_id),
        text_cell(busy_with(said, run.state)),
    ]


def _failure_cells(run: Run, now: datetime) -> list[Cell]:
    return [
        run_id_cell(run.id),
        state_cell(run.state),
        text_cell(run.job),
        age_cell(run.finished_at, now),
        Cell(error_line(run.error) if run.error else run.reason or "", style="red"),
    ]


def _queue_cells(one: QueueNow, now: datetime) -> list[Cell]:
    oldest = "" if one.oldest_at is None else span(now - one.oldest_at)
    counts = (one.running, one.queued, one.scheduled)
    paused = Cell("yes", "⏸ paused", "yellow") if one.paused else Cell("")
    return [text_cell(one.queue), *map(text_cell, counts), Cell("", oldest), paused]


def _worker_cells(one: Worker, now: datetime) -> list[Cell]:
    full = Cell("", f"{one.held}/{one.slots}", "yellow" if one.held >= one.slots else "")
    queues = text_cell(",".join(one.queues))
    return [text_cell(one.id), worker_state_cell(one.state), full, age_cell(one.seen_at, now), queues]


def _fire_cells(one: NextRun, now: datetime) -> list[Cell]:
    left = one.at - now
    due = Cell("", f"in {span(left)}") if left.total_seconds() > 0 else Cell("", f"due {span(-left)}", "yellow")
    return [text_cell(one.schedule), due, text_cell(one.job), text_cell(one.rule)]


def _attention_cells(one: Attention, now: datetime) -> list[Cell]:
    since = "" if one.since is None else span(now - one.since)
    return [Cell("", f"! {one.text}", "yellow"), Cell("", since), text_cell(one.hint)]


PARTS = {
    "attention": Pane(
        title="needs attention",
        columns=Columns(("problem", "for", "hint"), cut=("problem", "hint"), wide=("problem",), spare=("for", "hint")),
        none="nothing",
        items=lambda seen: seen.overview.attention,
        row=lambda one: Row(f"{one.kind} {one.subject}", one.text),
        cells=_attention_cells,
        count=lambda seen: seen.overview.attention_count,
    ),
    "runs": Pane(
        title="running",
        columns=Columns(
            ("run", "state", "job", "for", "done", "worker", "busy with"),
            cut=("job", "worker", "busy with"),
            spare=("for", "done", "worker", "busy with"),
        ),
        none="no runs",
        items=lambda seen: seen.runs,
        row=_row_of,
        cells=_run_cells,
        count=_begun,
    ),
    "failures": Pane(
        title="failed",
        columns=Columns(
            ("run", "state", "job", "ended", "error"), cut=("job", "error"), wide=("error",), spare=("ended",)
        ),
        none="no failures",
        items=lambda seen: seen.failures,
        row=_row_of,
        cells=_failure_cells,
    ),
    "queues": Pane(
        title="queues",
        columns=Columns(
            ("queue", "running", "queued", "scheduled", "oldest", "paused"),
            cut=("queue",),
            spare=("scheduled", "running"),
        ),
        none="all empty",
        items=lambda seen: seen.queues,
        row=lambda one: Row(one.queue, one.queue),
        cells=_queue_cells,
    ),
    "workers": Pane(
        title="workers",
        columns=Columns(
            ("worker", "state", "runs", "seen", "queues"),
            cut=("worker", "queues"),
            spare=("seen", "queues"),
        ),
        none="none: start `rota dev` or `rota worker MODULE:APP`",
        items=lambda seen: seen.workers,
        row=lambda one: Row(one.id, one.name),
        cells=_worker_cells,
    ),
    "fires": Pane(
        title="next runs",
        columns=Columns(("schedule", "when", "job", "rule"), cut=("schedule", "job", "rule"), spare=("rule", "job")),
        none="none",
        items=lambda seen: seen.overview.next_fires,
        row=lambda one: Row(f"{one.at} {one.schedule}", one.schedule),
        cells=_fire_cells,
    ),
}
