"""Chart of a chaos test: what happened to whom, what each worker held meanwhile, and how much came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from tests.chaos.cluster import Life
from tests.chaos.evidence import Attempt, Evidence
from tests.chaos.faults import BY_NAME, POSTGRES
from tests.chaos.injector import Stroke

LABELS = 118
_LEAST_WIDTH, _MARGIN, _PER_SECOND = 1160.0, 70.0, 6.0
_CURVE, _LANE, _ROW, _GAP = 84.0, 34.0, 5.0, 20.0
_MOST_ROWS = 14
_LATE = 0.25
"""Seconds that a handler may take to hear that its lease is gone, and are not worth a line."""

OUTCOMES = {
    "succeeded": "succeeded",
    "failed": "failed or timed out",
    "lost": "lost",
    "handed_back": "handed back",
    "cancelled": "cancelled",
    "zombie": "went on without its lease",
}
_CLASS = {"timed_out": "failed", "snoozed": "handed_back"}


class Picture:
    """Two drawings of one height: names, which stay, and what they are of, which may be wider than a screen."""

    def __init__(self, seen: Evidence, targets: Sequence[str]) -> None:
        self._seen = seen
        self._targets = sorted(targets, key=lambda name: name != POSTGRES)  # which is first, if there is one
        self._last_word = {(entry.run_id, entry.fence): entry.at for entry in seen.entries}
        self._span = max(seen.ended_at - seen.began_at, 1.0)
        self._width = max(_LEAST_WIDTH, self._span * _PER_SECOND)
        self._names: list[str] = []
        self._marks: list[str] = []
        self._bottom = 22.0
        self._curve()
        self._lanes()
        self._workers()
        self._frame()

    def html(self) -> str:
        size = f'height="{self._bottom:.0f}"'
        names = f'<svg class="names" width="{LABELS}" {size}>{"".join(self._names)}</svg>'
        marks = f'<svg width="{self._width + _MARGIN:.0f}" {size}>{"".join(self._marks)}</svg>'
        return f'<div class="picture">{names}<div class="scroll">{marks}</div></div>'

    def _x(self, at: float) -> float:
        """Of a moment by the monotonic clock."""
        return min(max(0.0, at - self._seen.began_at), self._span) / self._span * self._width

    def _name(self, y: float, text: str, kind: str = "") -> None:
        self._names.append(f'<text x="{LABELS - 8}" y="{y:.1f}" class="name {kind}">{escape(text)}</text>')

    def _bar(self, kind: str, span: tuple[float, float], y: float, height: float, title: str, text: str = "") -> None:
        left, right = self._x(span[0]), self._x(span[1])
        width = max(right - left, 2.5)
        shape = f'<rect class="{kind}" x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:g}" rx="2"/>'
        if text and width > 6.2 * len(text) + 4:
            shape += f'<text class="on" x="{left + 4:.1f}" y="{y + height - 3:.1f}">{escape(text)}</text>'
        self._marks.append(f"<g><title>{escape(title)}</title>{shape}</g>")

    def _curve(self) -> None:
        """Runs that came to an end, each second."""
        counts = ends_per_second(self._seen)
        top, height, most = self._bottom, _CURVE, max([*counts, 1])
        points = [f"0,{top + height:.1f}"]
        for second, count in enumerate(counts):
            points.append(f"{self._x(self._seen.began_at + second + 0.5):.1f},{top + height * (1 - count / most):.1f}")
        points.append(f"{self._x(self._seen.began_at + len(counts)):.1f},{top + height:.1f}")
        self._marks.append(f'<polygon class="curve" points="{" ".join(points)}"/>')
        self._name(top + 10, "runs ended")
        self._name(top + 24, f"{most} a second", "faint")
        self._name(top + height, "0", "faint")
        self._bottom += height + _GAP

    def _lanes(self) -> None:
        for target in self._targets:
            y = self._bottom
            self._name(y + 14, target)
            if target == POSTGRES:
                self._bar("alive", (self._seen.began_at, self._seen.ended_at), y + 2, 14, "PostgreSQL")
            for life in self._seen.lives:
                if life.target == target:
                    self._bar("alive", (life.since, life.until or self._seen.ended_at), y + 2, 14, _told(life))
            for stroke in self._seen.strokes:
                if stroke.fault.target == target:
                    self._stroke(stroke, y)
            self._bottom += _LANE
        self._bottom += _GAP

    def _stroke(self, stroke: Stroke, y: float) -> None:
        fault, kind = stroke.fault, BY_NAME[stroke.fault.kind]
        at, lasted = stroke.since - self._seen.began_at, stroke.until - stroke.since
        words = [f"{fault.target}: {kind.words}", fault.detail, stroke.note, f"at {at:.1f} s, for {lasted:.1f} s"]
        top, height = (y + 17.0, 12.0) if kind.track == "network" else (y + 2, 14.0)
        title = "\n".join(filter(None, words))
        self._bar(f"fault {fault.kind}", (stroke.since, stroke.until), top, height, title, fault.kind)

    def _workers(self) -> None:
        """What each of them held: an attempt is a line, those of one outcome are one path."""
        names = [target for target in self._targets if target.startswith("worker")]
        for name in names:
            attempts = [
                one
                for one in self._seen.attempts
                if one.name == name and self._mono(one.ended_at) > self._seen.began_at
            ]
            rows = stacked(attempts)
            self._name(self._bottom + 12, name)
            self._name(self._bottom + 25, f"{len(attempts)} attempts", "faint")
            paths: dict[str, list[str]] = {}
            for row, attempt in zip(rows, sorted(attempts, key=_begin), strict=True):
                y = self._bottom + min(row, _MOST_ROWS) * _ROW + 4
                self._line(paths, attempt, y)
            for kind, shapes in paths.items():
                self._marks.append(f'<path class="attempt {kind}" d="{"".join(shapes)}"/>')
            self._bottom += max(32.0, (min(max([*rows, 0]), _MOST_ROWS) + 1) * _ROW + 8) + 6

    def _line(self, paths: dict[str, list[str]], attempt: Attempt, y: float) -> None:
        ended = self._mono(attempt.ended_at)
        left, right = self._x(self._mono(attempt.claimed_at)), self._x(ended)
        kind = _CLASS.get(attempt.outcome, attempt.outcome)
        paths.setdefault(kind, []).append(f"M{left:.1f} {y:.1f}h{max(right - left, 1.2):.1f}")
        last = self._last_word.get((attempt.run_id, attempt.fence), 0.0)
        if last > ended + _LATE:
            paths.setdefault("zombie", []).append(f"M{right:.1f} {y:.1f}h{max(self._x(last) - right, 1.2):.1f}")

    def _mono(self, micros: int) -> float:
        return micros / 1e6 - self._seen.wall

    def _frame(self) -> None:
        """Behind all else: when the database was away, when it was healed, and the seconds."""
        behind = []
        for stroke in self._seen.strokes:
            if stroke.fault.target == POSTGRES and stroke.until - stroke.since > 0.05:
                left, right = self._x(stroke.since), self._x(stroke.until)
                behind.append(f'<rect class="away" x="{left:.1f}" y="18" width="{right - left:.1f}" height="100%"/>')
        step = next(one for one in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600) if one / self._span * self._width >= 55)
        for second in range(0, int(self._span) + 1, step):
            x = self._x(self._seen.began_at + second)
            behind.append(f'<path class="grid" d="M{x:.1f} 18V{self._bottom:.0f}"/>')
            behind.append(f'<text class="tick" x="{x + 3:.1f}" y="12">{second} s</text>')
        moments = (("end", self._seen.healed_at, "healed"), ("start", self._seen.recovered_at, "all work again"))
        for anchor, at, words in moments:
            x = self._x(at)
            behind.append(f'<path class="moment" d="M{x:.1f} 18V{self._bottom:.0f}"/>')
            place = f'text-anchor="{anchor}" x="{x + (4 if anchor == "start" else -4):.1f}" y="{_CURVE + 34:.1f}"'
            behind.append(f'<text class="moment" {place}>{words}</text>')
        self._marks[:0] = behind


def _begin(attempt: Attempt) -> int:
    return attempt.claimed_at


def _told(life: Life) -> str:
    end = f"{life.end} ({life.code})" if life.end else "lives"
    return f"{life.target}, pid {life.pid}: {end}"


def stacked(attempts: Iterable[Attempt]) -> list[int]:
    """The row of each, in the order of their begin: the first that is free."""
    rows: list[int] = []
    free: list[int] = []
    for attempt in sorted(attempts, key=_begin):
        place = next((row for row, until in enumerate(free) if until <= attempt.claimed_at), len(free))
        free[place : place + 1] = [attempt.ended_at]
        rows.append(place)
    return rows


def ends_per_second(seen: Evidence) -> list[int]:
    """Of runs that were begun, by whom they were done."""
    ends = Counter(
        int(run.end.finished_at / 1e6 - seen.wall - seen.began_at)
        for run in seen.runs.values()
        if run.end and run.end.state != "skipped" and run.end.worker
    )
    last = int(seen.ended_at - seen.began_at)
    return [ends[second] for second in range(max(last, 1))]


def quiet_seconds(seen: Evidence) -> int:
    """The longest time in which nothing ended, before all was healed."""
    times = [second for second, count in enumerate(ends_per_second(seen)) if count]
    return max((after - before for before, after in pairwise(times)), default=0)
