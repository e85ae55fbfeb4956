"""Parts of `rota top` as rows: running, failed, errors, queues, workers, next runs, and what needs attention."""

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
from rota.cli.top.data import Snapshot
from rota.cli.top.keys import Row, View
from rota.core.jobs.queues import Queue
from rota.core.monitoring.attention import Attention
from rota.core.monitoring.doctor import many
from rota.core.monitoring.error_groups import ErrorGroup
from rota.core.monitoring.overview import NextRun
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


def rows_of(pane: str, snapshot: Snapshot) -> list[Row]:
    part = PARTS[pane]
    return [part.row(item) for item in part.items(snapshot)]


def draw_pane(name: str, snapshot: Snapshot, now: datetime, view: View, width: int, room: int) -> list[Text]:
    """Draw a part: a line for the title, and up to `room` rows around the selected one."""
    pane, here = PARTS[name], view.pane == name
    items = pane.items(snapshot)
    mark, style = (_HERE, "bold cyan") if here else (_ELSEWHERE, "bold")
    title = f"{pane.title} {pane.count(snapshot) if pane.count else len(items)}"
    if not items:
        head = Text(f"{mark}{title}", style=style)
        return [_cut(Text.assemble(head, (f"  {pane.none}", "dim")), width)]
    place = view.place(rows_of(name, snapshot)) if here else None
    start = _start(place, len(items), room)
    shown = items[start : start + room]
    cells = [pane.cells(item, now) for item in shown]  # only visible rows: a hundred would make keys sluggish
    head, *lines = lines_of(_titled(pane.columns, title), cells, width - len(mark))
    head.stylize(style)
    head = _with_more(Text(mark, style=style).append_text(head), start, len(items) - start - len(shown), width)
    return [head, *(_marked(line, width, chosen=at == place) for at, line in enumerate(lines, start))]


def _titled(columns: Columns, title: str) -> Columns:
    """Return the columns with the part's title as that of the first column."""
    first, *rest = columns.titles
    cut, wide = (tuple(title if name == first else name for name in names) for names in (columns.cut, columns.wide))
    return Columns((title, *rest), cut=cut, wide=wide, spare=columns.spare)


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


def _running_count(snapshot: Snapshot) -> int:
    live = snapshot.overview.live
    return max(len(snapshot.runs), live.running + live.waiting + live.cancelling)


def _row_of(run: Run) -> Row:
    return Row(run.id, run.job)


def _run_cells(run: Run, now: datetime) -> list[Cell]:
    progress = progress_of(run.progress, (), run.state)
    done = "" if progress.percentage is None else f"{bar(progress.percentage, _BAR)} {percent(progress.percentage)}"
    return [
        run_id_cell(run.id),
        state_cell(run.state),
        text_cell(run.job),
        span_cell(run.started_at or run.created_at, None, now),
        Cell("", done, "cyan"),
        text_cell(run.worker_id),
        text_cell(busy_with(progress, run.state)),
    ]


def _failure_cells(run: Run, now: datetime) -> list[Cell]:
    return [
        run_id_cell(run.id),
        state_cell(run.state),
        text_cell(run.job),
        age_cell(run.finished_at, now),
        Cell(error_line(run.error) if run.error else run.reason or "", style="red"),
    ]


def _error_cells(group: ErrorGroup, now: datetime) -> list[Cell]:
    error = ": ".join(part for part in (group.type, group.message) if part)
    jobs = group.job if group.job_count == 1 else many(group.job_count, "job", "jobs")
    return [
        Cell(error, error.partition("\n")[0], "red"),
        text_cell(group.count),
        text_cell(jobs),
        age_cell(group.last_at, now),
    ]


def _queue_cells(queue: Queue, now: datetime) -> list[Cell]:
    oldest = "" if queue.oldest_at is None else span(now - queue.oldest_at)
    counts = (queue.running, queue.queued, queue.scheduled)
    paused = Cell("yes", "⏸ paused", "yellow") if queue.paused else Cell("")
    return [text_cell(queue.queue), *map(text_cell, counts), Cell("", oldest), paused]


def _worker_cells(worker: Worker, now: datetime) -> list[Cell]:
    full = Cell("", f"{worker.held}/{worker.slots}", "yellow" if worker.held >= worker.slots else "")
    queues = text_cell(",".join(worker.queues))
    return [text_cell(worker.id), worker_state_cell(worker.state), full, age_cell(worker.seen_at, now), queues]


def _fire_cells(next_run: NextRun, now: datetime) -> list[Cell]:
    remaining = next_run.at - now
    due = (
        Cell("", f"in {span(remaining)}")
        if remaining.total_seconds() > 0
        else Cell("", f"due {span(-remaining)}", "yellow")
    )
    return [text_cell(next_run.schedule), due, text_cell(next_run.job), text_cell(next_run.rule)]


def _attention_cells(problem: Attention, now: datetime) -> list[Cell]:
    since = "" if problem.since is None else span(now - problem.since)
    return [Cell("", f"! {problem.text}", "yellow"), Cell("", since), text_cell(problem.hint)]


PARTS = {
    "attention": Pane(
        title="needs attention",
        columns=Columns(("problem", "for", "hint"), cut=("problem", "hint"), wide=("problem",), spare=("for", "hint")),
        none="nothing",
        items=lambda snapshot: snapshot.overview.attention,
        row=lambda item: Row(f"{item.kind} {item.subject}", item.text),
        cells=_attention_cells,
        count=lambda snapshot: snapshot.overview.attention_count,
    ),
    "runs": Pane(
        title="running",
        columns=Columns(
            ("run", "state", "job", "for", "done", "worker", "busy with"),
            cut=("job", "worker", "busy with"),
            spare=("for", "done", "worker", "busy with"),
        ),
        none="no runs",
        items=lambda snapshot: snapshot.runs,
        row=_row_of,
        cells=_run_cells,
        count=_running_count,
    ),
    "failures": Pane(
        title="failed",
        columns=Columns(
            ("run", "state", "job", "ended", "error"), cut=("job", "error"), wide=("error",), spare=("ended",)
        ),
        none="no failures",
        items=lambda snapshot: snapshot.failures,
        row=_row_of,
        cells=_failure_cells,
    ),
    "errors": Pane(
        title="errors of a day",
        columns=Columns(
            ("error", "count", "job", "last"), cut=("error", "job"), wide=("error",), spare=("last", "job")
        ),
        none="none",
        items=lambda snapshot: snapshot.errors,
        row=lambda item: Row(f"{item.fingerprint} {item.job}", item.message or ""),
        cells=_error_cells,
    ),
    "queues": Pane(
        title="queues",
        columns=Columns(
            ("queue", "running", "queued", "scheduled", "oldest", "paused"),
            cut=("queue",),
            spare=("scheduled", "running"),
        ),
        none="all empty",
        items=lambda snapshot: snapshot.queues,
        row=lambda item: Row(item.queue, item.queue),
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
        items=lambda snapshot: snapshot.workers,
        row=lambda item: Row(item.id, item.name),
        cells=_worker_cells,
    ),
    "fires": Pane(
        title="next runs",
        columns=Columns(("schedule", "when", "job", "rule"), cut=("schedule", "job", "rule"), spare=("rule", "job")),
        none="none",
        items=lambda snapshot: snapshot.overview.next_fires,
        row=lambda item: Row(f"{item.at} {item.schedule}", item.schedule),
        cells=_fire_cells,
    ),
}
