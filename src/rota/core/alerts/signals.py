"""Signals: events that schedules and notifications listen for, and the words that people use for them."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from rota.core.calendar.triggers.job_end import FollowedEnd

FAILED = ("failed", "timed_out", "expired")
WORDS = {
    "succeeded": "success",
    **dict.fromkeys(FAILED, "failure"),
    "cancelled": "cancelled",
    "skipped": "skip",
    "missed": "missed",
    "late": "late",
    "breached": "breached",
    "met": "met",
}
"""Type of a signal → word that people listen for."""

WEBHOOK_JOB, EMAIL_JOB = "rota.webhook", "rota.email"
OWN_JOBS = (WEBHOOK_JOB, EMAIL_JOB)
"""Jobs that send notifications. Their own ends are not notified: that would never stop."""


class Signal(msgspec.Struct, frozen=True, gc=False):
    """Event that somebody may listen for.

    `type` is the final state of a run, or `missed`, `late`, `breached`, `met`; `subject` depends on `kind`: the id of a
    run, or the name of a job or a schedule.
    """

    no: int
    at: int
    type: str
    kind: str
    subject: str
    job: str | None = None
    schedule: str | None = None
    details: dict[str, Any] = {}

    @property
    def word(self) -> str:
        return WORDS.get(self.type, self.type)

    @property
    def is_own(self) -> bool:
        return self.job in OWN_JOBS


def is_followed(on: FollowedEnd, state: str) -> bool:
    """Return whether a schedule that follows the ends `on` runs after this one. A skipped run has not run."""
    match on:
        case FollowedEnd.SUCCESS | FollowedEnd.FAILURE:
            return WORDS.get(state) == on
        case FollowedEnd.END:
            return state != "skipped"
        case _:
            assert_never(on)
