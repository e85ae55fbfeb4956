"""The life of a run: its states, and the one table of changes that are legal."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SKIPPED = "skipped"

    @property
    def is_final(self) -> bool:
        return not LEGAL_CHANGES[self]


class Outcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"
    SNOOZED = "snoozed"
    HANDED_BACK = "handed_back"


_S = RunState
_AFTER_WORK = {_S.SCHEDULED, _S.QUEUED, _S.SUCCEEDED, _S.FAILED, _S.TIMED_OUT, _S.CANCELLED, _S.EXPIRED}

LEGAL_CHANGES: dict[RunState, frozenset[RunState]] = {
    _S.SCHEDULED: frozenset({_S.QUEUED, _S.WAITING, _S.CANCELLED, _S.SKIPPED, _S.EXPIRED}),
    _S.QUEUED: frozenset({_S.SCHEDULED, _S.RUNNING, _S.CANCELLED, _S.SKIPPED, _S.EXPIRED}),
    _S.RUNNING: frozenset({*_AFTER_WORK, _S.WAITING, _S.CANCELLING}),
    _S.WAITING: frozenset({*_AFTER_WORK, _S.CANCELLING}),
    _S.CANCELLING: frozenset({_S.SUCCEEDED, _S.CANCELLED}),
    _S.SUCCEEDED: frozenset(),
    _S.FAILED: frozenset(),
    _S.TIMED_OUT: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.EXPIRED: frozenset(),
    _S.SKIPPED: frozenset(),
}

FINAL_STATES = frozenset(state for state, after in LEGAL_CHANGES.items() if not after)
LIVE_STATES = frozenset(LEGAL_CHANGES) - FINAL_STATES
