"""Layout of `rota top`: one picture as lines that fit a terminal of any size."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from rich.text import Text

from rota.cli.terminal.format import chart, one_line
from rota.cli.top.data import LOOKED_BACK, Snapshot
from rota.cli.top.keys import PANES, View
from rota.cli.top.panes import PARTS, draw_pane
from rota.core.monitoring.doctor import many
from rota.core.monitoring.overview import Overview
from rota.values.durations import format_duration, span

_SIDE_BY_SIDE = 110
_GAP = 2
_NARROWEST = 40
_LEFT = ("runs", "failures", "errors")
_RIGHT = ("queues", "workers", "fires")
_AT_ONCE = 10
_SOME = 3
_OUTCOMES = (
    ("succeeded", ("succeeded",), "green"),
    ("failed", ("failed", "timed_out", "expired"), "red"),
    ("other", ("cancelled", "skipped"), "yellow"),
)
_KEYS = "q quit  p pause  tab part  j k select  enter show  c cancel  r retry  ? help"
_HELP = """\
q            quit; close this help, or the page of a run
p            pause: read nothing until it is pressed again
tab          next part; shift-tab previous part
j k ↓ ↑      select a row; page up, page down, g and G move further
enter        show the run, as `rota run get` does
c            cancel the run, after confirmation with y
r            retry a run that has ended, as a new run
?            this help

A selected run that leaves its list is not selected any more."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Facts around the data: `where` it comes from, how often it is read, and why it cannot be read (`away`)."""

    where: str
    every: timedelta | None = None
    away: str | None = None


def picture(snapshot: Snapshot, now: datetime, view: View, frame: Frame, width: int, height: int) -> list[Text]:
    """Draw one picture: at most `height` lines, none wider than `width`."""
    head, foot = _head(snapshot, now, view, frame, width), _foot(view, snapshot, width)
    room = max(0, height - len(head) - 1)
    body = help_lines() if view.helping else _body(snapshot, now, view, width, room)
    return _fitted([*head, *body[:room], *[Text()] * (room - len(body)), foot], width, height)


def whole_picture(snapshot: Snapshot, now: datetime, frame: Frame, width: int) -> list[Text]:
    """Draw a picture of any height, for `--once`, with up to ten rows of each part."""
    view = View(pane="")
    parts = [draw_pane(name, snapshot, now, view, width, _AT_ONCE) for name in PANES]
    body = [line for part in parts for line in [Text(), *part]]
    return _fitted([*_head(snapshot, now, view, frame, width), *body], width, None)


def run_picture(lines: Sequence[Text], view: View, frame: Frame, width: int, height: int) -> list[Text]:
    """Draw the page of a run, whose text is `lines`."""
    room = max(1, height - 2)
    start = max(0, min(view.offset, len(lines) - room))
    shown = lines[start : start + room]
    below = len(lines) - start - len(shown)
    words = "q back  c cancel  r retry" + (f"  j k scroll (↓{below})" if below or start else "")
    title = Text(f"rota top  {one_line(frame.where)}", style="bold")
    status = Text(one_line(frame.away or ""), style="bold red")
    foot = _question(view) or Text(words, style="dim")
    return _fitted([_ends(title, status, width), *shown, *[Text()] * (room - len(shown)), foot], width, height)


def help_lines() -> list[Text]:
    return [Text(), *(Text(f"  {line}") for line in _HELP.splitlines())]


def _fitted(lines: list[Text], width: int, height: int | None) -> list[Text]:
    for line in lines:
        line.truncate(max(1, width), overflow="ellipsis")
    return lines if height is None else lines[: max(1, height)]


def _head(snapshot: Snapshot, now: datetime, view: View, frame: Frame, width: int) -> list[Text]:
    title = Text(f"rota top  {one_line(frame.where)}", style="bold")
    lines = [_ends(title, _status(now, view, frame), width), _levels(snapshot.overview, now), *_rates(snapshot, width)]
    return lines if view.pane == "" else [*lines, Text()]


def _status(now: datetime, view: View, frame: Frame) -> Text:
    if frame.away:
        return Text(one_line(frame.away), style="bold red")
    if view.paused:
        return Text("⏸ paused", style="bold yellow")
    often = f"  every {format_duration(frame.every)}" if frame.every else ""
    return Text(f"{now.astimezone(UTC):%H:%M:%S} UTC{often}", style="dim")


def _ends(left: Text, right: Text, width: int) -> Text:
    """Join two texts to one line. The right one, which may be an error, is not shortened for the left one."""
    right.truncate(max(1, width), overflow="ellipsis")
    left.truncate(max(0, width - right.cell_len - _GAP), overflow="ellipsis", pad=True)
    return Text.assemble(left, "  ", right) if right else left


def _levels(overview: Overview, now: datetime) -> Text:
    live, late = overview.live, overview.late.runs + overview.late.schedules
    oldest = f" (oldest {span(now - live.oldest_queued_at)})" if live.oldest_queued_at else ""
    more = "+" if live.capped else ""
    workers = overview.workers
    stale = f", {workers.stale} stale" if workers.stale else ""
    parts = [
        (f"▶ {live.running} running of {workers.slots}", "cyan"),
        (f"○ {live.queued}{more} queued{oldest}", "blue" if live.queued else "dim"),
        (f"◷ {live.scheduled}{more} scheduled", "blue" if live.scheduled else "dim"),
        (f"! {late} late", "bold yellow" if late else "dim"),
        (many(workers.alive, "worker", "workers") + stale, _worried(workers.stale)),
    ]
    return Text("  ").join(Text(words, style=style) for words, style in parts)


def _worried(count: int) -> str:
    return "bold yellow" if count else "dim"


def _rates(snapshot: Snapshot, width: int) -> list[Text]:
    """Draw charts of ended runs by outcome, a bar for one or several minutes. Outcomes without runs are left out."""
    buckets = snapshot.series.buckets[-int(LOOKED_BACK.total_seconds() // 60) :]
    counts = [
        (name, [sum(bucket.runs.get(state, 0) for state in states) for bucket in buckets], style)
        for name, states, style in _OUTCOMES
    ]
    charts = [bucket for bucket in counts if any(bucket[1])] or counts[:1]
    bars = max(5, min(len(buckets), (width - 12) // len(charts) - 20))
    line = Text("30 minutes  ")
    for name, each, style in charts:
        line.append(chart(rebucketed(each, bars)).rjust(bars), style=style)
        line.append(f" {sum(each)} {name}  ")
    line.rstrip()
    return [line]


def rebucketed(counts: Sequence[int], most: int) -> list[int]:
    """Sum the counts to at most `most` buckets of the same size. Only the oldest bucket may be incomplete."""
    each = max(1, -(-len(counts) // most))
    return [sum(counts[max(0, end - each) : end]) for end in range(len(counts), 0, -each)][::-1]


def _foot(view: View, snapshot: Snapshot, width: int) -> Text:
    return _question(view) or Text(_KEYS if width >= len(_KEYS) else "q quit  ? help", style="dim")


def _question(view: View) -> Text | None:
    if view.asking is not None:
        return Text(one_line(f"{view.asking.words}? y: yes, any other key: no"), style="bold yellow")
    return Text(one_line(view.message), style="bold") if view.message else None


def _body(snapshot: Snapshot, now: datetime, view: View, width: int, room: int) -> list[Text]:
    if width < _SIDE_BY_SIDE:
        return _column(PANES, snapshot, now, view, width, room)
    rows = len(PARTS["attention"].items(snapshot))
    above = draw_pane("attention", snapshot, now, view, width, min(rows, max(3, room // 4)))
    below = max(0, room - len(above) - 1)
    left_width = width - _GAP - max(_NARROWEST, width // 3)
    left = _column(_LEFT, snapshot, now, view, left_width, below, spaced=True)
    right = _column(_RIGHT, snapshot, now, view, width - _GAP - left_width, below, spaced=True)
    return [*above, Text(), *_beside(left, right, left_width)]


def _beside(left: list[Text], right: list[Text], left_width: int) -> list[Text]:
    lines = []
    for at in range(max(len(left), len(right))):
        line = left[at] if at < len(left) else Text()
        line.truncate(left_width, overflow="ellipsis", pad=True)
        lines.append(Text.assemble(line, " " * _GAP, right[at] if at < len(right) else Text()))
    return lines


def _column(
    names: Sequence[str], snapshot: Snapshot, now: datetime, view: View, width: int, room: int, *, spaced: bool = False
) -> list[Text]:
    row_counts = {name: len(PARTS[name].items(snapshot)) for name in names}
    lines: list[Text] = []
    for name, count in shares(row_counts, view.pane, room, gap=1 if spaced else 0).items():
        lines += [*([Text()] if spaced and lines else []), *draw_pane(name, snapshot, now, view, width, count)]
    return lines


def shares(row_counts: dict[str, int], focus: str, room: int, gap: int = 0) -> dict[str, int]:
    """Return how many rows each part gets below its title. The focused part may take half of the room."""
    names = list(row_counts)
    least = min(_SOME, row_counts.get(focus, 0))
    while len(names) > 1 and len(names) * (1 + gap) + least > room:  # rows in focus matter more than other titles
        names.remove(next(name for name in reversed(names) if name != focus))
    free = max(0, room - len(names) - gap * (len(names) - 1))
    shares = dict.fromkeys(names, 0)
    if focus in shares:
        shares[focus] = min(row_counts[focus], free, max(_SOME, free // 2))
    free -= sum(shares.values())
    while free and (hungry := [name for name in names if shares[name] < row_counts[name]]):
        for name in sorted(hungry, key=lambda name: shares[name] - (name == focus))[:free]:
            shares[name] += 1
            free -= 1
    return shares
