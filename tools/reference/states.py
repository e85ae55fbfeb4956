"""The reference of states: of runs and how they change, of attempts, steps, jobs and workers; and a drawing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rota.core.jobs.status import JOB_STATE_WORDS
from rota.core.planning.tally import MISSED_WORDS, SKIPPED_WORDS
from rota.core.progress.steps import STEP_STATE_WORDS
from rota.core.states import FINAL_STATES, LEGAL_CHANGES, OUTCOME_WORDS, STATE_WORDS, RunState
from rota.core.workers.worker import WORKER_STATE_WORDS
from tools.reference.settings import row, table

PLACES = {
    RunState.SCHEDULED: (110, 60),
    RunState.QUEUED: (330, 60),
    RunState.RUNNING: (550, 60),
    RunState.WAITING: (550, 190),
    RunState.CANCELLING: (770, 125),
}
WIDTH, HEIGHT, BOX = 880, 330, (116, 36)
STYLE = """
  text { font: 14px ui-sans-serif, system-ui, sans-serif; fill: #1c1d20 }
  text { text-anchor: middle; dominant-baseline: central }
  .small { font-size: 12px; fill: #55565c }
  .back { fill: #fbfbfa; stroke: #d9d9d4 }
  .live { fill: #eaf0fb; stroke: #2457b5 }
  .end { fill: #f1f1ee; stroke: #8b8b85 }
  path { fill: none; stroke: #55565c; stroke-width: 1.4; marker-end: url(#tip) }
"""
TIP = """<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
  <polygon points="0,0 8,4 0,8" fill="#55565c"/></marker></defs>"""


def page() -> str:
    lines = [
        "# States",
        "",
        "[Jobs and runs](../jobs.md#the-states-of-a-run) explains them.",
        "",
        "## A run",
        "",
        "![What a run may become](states.svg)",
        "",
        *words(STATE_WORDS, "state"),
        "",
        "What may become of it; nothing else is ever written:",
        "",
        *table("from", "to, while it lives", "to, in the end"),
    ]
    for state, after in LEGAL_CHANGES.items():
        if after:
            lines.append(row(f"`{state}`", listed(after - FINAL_STATES), listed(after & FINAL_STATES)))
    lines += ["", f"{listed(FINAL_STATES)} are final: they never change.", ""]
    lines += ["## An attempt", "", *words(OUTCOME_WORDS, "outcome"), ""]
    lines += ["## A step", "", *words(STEP_STATE_WORDS, "state"), ""]
    lines += [
        "## A plan time",
        "",
        "Each gets a run, is covered by that of a later one, or has none. It is skipped:",
    ]
    lines += ["", *words(SKIPPED_WORDS, "because of"), "", "or missed:", "", *words(MISSED_WORDS, "because of"), ""]
    lines += ["## A job", "", *words(JOB_STATE_WORDS, "state"), ""]
    lines += ["## A worker", "", *words(WORKER_STATE_WORDS, "state")]
    return "\n".join(lines)


def words(meanings: Mapping[Any, str], head: str) -> list[str]:
    return [*table(head, "means"), *(row(f"`{name}`", meaning) for name, meaning in meanings.items())]


def listed(states: frozenset[RunState]) -> str:
    return ", ".join(f"`{state}`" for state in RunState if state in states) or "none"


def drawing() -> str:
    """Live states as boxes with all changes between them; under each, that it may end."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>The states of a run</title>",
        f"<style>{STYLE}</style>",
        TIP,
        f'<rect class="back" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
    ]
    changes = [(state, to) for state, after in LEGAL_CHANGES.items() for to in RunState if to in after and to in PLACES]
    parts += [arrow(PLACES[state], PLACES[to]) for state, to in changes]
    parts += [box(x, y, state, "live") for state, (x, y) in PLACES.items()]
    ends = [state for state in RunState if state in FINAL_STATES]
    step = WIDTH / len(ends)
    parts += [box(step * (number + 0.5), 285, state, "end") for number, state in enumerate(ends)]
    parts.append(f'<text class="small" x="{WIDTH / 2}" y="245">… and in the end one of these, for ever:</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def box(x: float, y: float, word: str, kind: str) -> str:
    wide, high = BOX
    place = f'x="{x - wide / 2:g}" y="{y - high / 2:g}" width="{wide}" height="{high}"'
    return f'<rect class="{kind}" {place} rx="6"/><text x="{x:g}" y="{y:g}">{word}</text>'


def arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """From border to border; bent to one side, so that there and back are two lines."""
    (x1, y1), (x2, y2) = start, end
    dx, dy = x2 - x1, y2 - y1
    far = abs(dx) > 300
    bend = -0.08 if far and dx > 0 else 0.16 if far or not dx else 0.12
    bend = -bend if far and not dy else bend
    cx, cy = (x1 + x2) / 2 + dy * bend, (y1 + y2) / 2 - dx * bend
    ax, ay = border(start, (cx, cy))
    bx, by = border(end, (cx, cy))
    return f'<path d="M{ax:.0f} {ay:.0f} Q{cx:.0f} {cy:.0f} {bx:.0f} {by:.0f}"/>'


def border(centre: tuple[float, float], toward: tuple[float, float]) -> tuple[float, float]:
    """Where the line from a box's centre leaves it."""
    dx, dy = toward[0] - centre[0], toward[1] - centre[1]
    scale = min(BOX[0] / 2 / abs(dx) if dx else 9e9, BOX[1] / 2 / abs(dy) if dy else 9e9)
    return centre[0] + dx * scale, centre[1] + dy * scale
