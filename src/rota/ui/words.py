"""Times and states as people read them."""

from __future__ import annotations

from datetime import datetime

from rota import durations
from rota.api.addresses import at
from rota.core.model import Run
from rota.core.states import Outcome, RunState
from rota.ui.html import Content, Html, tag

_SHAPES = {
    RunState.SCHEDULED: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zm0 1.2a3.8 3.8 0 1 1 0 7.6 3.8 3.8 0 0 1 0-7.6z"
    "M5.4 3h1.2v2.8l1.9 1.1-.6 1L5.4 6.5z",
    RunState.QUEUED: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zm0 1.4a3.6 3.6 0 1 1 0 7.2 3.6 3.6 0 0 1 0-7.2z",
    RunState.RUNNING: "M3 1.2v9.6L11 6z",
    RunState.WAITING: "M2.5 1.5h2.6v9H2.5zM6.9 1.5h2.6v9H6.9z",
    RunState.CANCELLING: "M1.5 1.5h9v9h-9zm1.4 1.4v6.2h6.2V2.9z",
    RunState.SUCCEEDED: "M4.6 10.2.9 6.5l1.3-1.3 2.4 2.4 5.2-5.3 1.3 1.3z",
    RunState.FAILED: "M2.4 1.1 6 4.7l3.6-3.6 1.3 1.3L7.3 6l3.6 3.6-1.3 1.3L6 7.3l-3.6 3.6-1.3-1.3L4.7 6 1.1 2.4z",
    RunState.TIMED_OUT: "M1.5.8h9v1.5L7.2 6l3.3 3.7v1.5h-9V9.7L4.8 6 1.5 2.3z",
    RunState.CANCELLED: "M1.5 1.5h9v9h-9z",
    RunState.EXPIRED: "M6 .8 11.4 11H.6z",
    RunState.SKIPPED: "M1 2v8l4.6-4zM6 2v8l4.6-4zM10 2h1.2v8H10z",
}
_AS_STATES = {
    Outcome.LOST: RunState.EXPIRED,
    Outcome.SNOOZED: RunState.SCHEDULED,
    Outcome.HANDED_BACK: RunState.QUEUED,
}


def state(value: RunState | Outcome) -> Html:
    """A shape, a word and a colour; any one of them is enough."""
    look = value if isinstance(value, RunState) else _AS_STATES.get(value) or RunState(value.value)
    path = tag("path", d=_SHAPES[look], fill_rule="evenodd")
    shape = tag("svg", path, viewBox="0 0 12 12", aria_hidden="true")
    return tag("span", shape, value.value.replace("_", " "), class_=f"state {look.value}")


def moment(at: datetime | None) -> Html | None:
    if at is None:
        return None
    text = at.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "")
    return tag("time", text, " UTC", datetime=at.isoformat())


def age(at: datetime, now: datetime) -> Html:
    when = at.isoformat(sep=" ", timespec="seconds")
    return tag("time", durations.age(at, now), datetime=at.isoformat(), title=when)


def duration(run: Run, now: datetime) -> Content:
    """How long it took, so far; when it is due if it has not begun."""
    if run.state is RunState.SCHEDULED:
        return tag("span", "due ", age(run.run_at, now), class_="quiet")
    if run.started_at is None:
        return "–"
    return durations.span((run.finished_at or now) - run.started_at)


def link(run: Run) -> Html:
    """By its end: runs that were enqueued together begin alike. The command line takes the end, too."""
    return tag("a", f"…{run.id[-12:]}", href=at(f"/runs/{run.id}"), class_="id", title=run.id)


def first_line(text: str, size: int = 120) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= size else f"{line[: size - 1]}…"
