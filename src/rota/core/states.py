"""States of a run, and the one table of legal state changes."""

from __future__ import annotations

from enum import StrEnum

FENCES = 1_000_000
"""Fences of one run that an epoch has at least: one for each claim, and each time a lease is taken away."""


class RunState(StrEnum):
    """State of a run."""

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
    """Result of one attempt."""

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

STATE_WORDS: dict[RunState, str] = {
    _S.SCHEDULED: "not due yet: it waits for its time, for a retry or for the runs that it follows",
    _S.QUEUED: "due; a worker may claim it as soon as its limits have room",
    _S.RUNNING: "a worker holds its lease and runs its handler",
    _S.WAITING: "an external worker has it, or its replicas run; it uses no slot of a worker",
    _S.CANCELLING: "running, and asked to stop",
    _S.SUCCEEDED: "its handler returned; the result is kept",
    _S.FAILED: "its handler raised, and no attempt is left; the error is kept",
    _S.TIMED_OUT: "it exceeded its `timeout`, and no attempt is left",
    _S.CANCELLED: "a person or a policy stopped it",
    _S.EXPIRED: "its worker was lost, and it must not run again; or it was for one worker only, which is gone",
    _S.SKIPPED: "it never began: a policy, a limit or a run that it follows prevented it; `reason` says which",
}

OUTCOME_WORDS: dict[Outcome, str] = {
    Outcome.SUCCEEDED: "the handler returned",
    Outcome.FAILED: "the handler raised; it is retried while attempts are left",
    Outcome.TIMED_OUT: "it exceeded its `timeout`; it is retried like a failure",
    Outcome.CANCELLED: "it was asked to stop, and did",
    Outcome.LOST: "its worker sent no heartbeat for a lease; it is retried, unless `on_lost` is `fail`",
    Outcome.SNOOZED: "the handler raised `Snooze`; it runs again later, and this costs no attempt",
    Outcome.HANDED_BACK: "its worker was stopping; another worker takes over, and this costs no attempt",
}


def has_begun(fence: int) -> bool:
    """Return whether a run that is not held was claimed before, judged by its fence.

    Every claim increments the fence, and nothing decrements it. The attempt number does not tell: a hand-back, a snooze
    and the next part of a pipeline decrement it, and a run that its schedule retries starts at a higher one.
    """
    return fence > 0


def end_unclaimed_as(wanted: RunState, fence: int) -> RunState:
    """Return the final state of a run that no worker holds when it is ended as `wanted`.

    `skipped` means that a run never began: one that did becomes `cancelled`.
    """
    return RunState.CANCELLED if wanted is RunState.SKIPPED and has_begun(fence) else wanted


FINAL_STATES = frozenset(state for state, after in LEGAL_CHANGES.items() if not after)
LIVE_STATES = frozenset(LEGAL_CHANGES) - FINAL_STATES
