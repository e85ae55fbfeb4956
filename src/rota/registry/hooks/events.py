"""Hooks: jobs of the application that are told of events, `@app.on("run.failed")`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from rota.core.alerts.notifications import JOB
from rota.errors import Invalid, did_you_mean

EventWord = Literal[
    "run.succeeded",
    "run.failed",
    "run.cancelled",
    "run.skipped",
    "schedule.missed",
    "expectation.late",
    "expectation.breached",
    "expectation.met",
]
EVENTS = {
    "run.succeeded": "success",
    "run.failed": "failure",
    "run.cancelled": "cancelled",
    "run.skipped": "skip",
    "schedule.missed": "missed",
    "expectation.late": "late",
    "expectation.breached": "breached",
    "expectation.met": "met",
}
"""Names of events, and the words that notifications have for them."""
_AT_MOST = 1_000_000


def job_of(hook: Callable[..., Any]) -> str:
    """Return the name of the job that a hook is."""
    return f"on.{getattr(hook, '__name__', 'hook')}"


def notification_to(
    job: str, events: Iterable[str], jobs: Iterable[str], schedules: Iterable[str], *, include_payload: bool
) -> dict[str, Any]:
    """Return the options of the notification that tells a hook."""
    return {
        "on": checked_events(events),
        "to": JOB + job,
        "jobs": list(jobs) or None,
        "schedules": list(schedules) or None,
        "include_payload": include_payload,
        "at_most": _AT_MOST,
    }


def checked_events(events: Iterable[str]) -> list[str]:
    """Return the words that notifications have for these events."""
    words = [_word(event) for event in events]
    if not words:
        raise Invalid("a hook needs an event", hint='@app.on("run.failed")')
    return words


def _word(event: object) -> str:
    word = EVENTS.get(str(event))
    if word is None:
        raise Invalid(f"there is no event {event!r:.80}", hint=did_you_mean(str(event), EVENTS))
    return word
