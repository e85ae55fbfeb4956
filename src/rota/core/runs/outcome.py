"""Decide how the end of an attempt, or the loss of its lease, changes its run."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, assert_never

import msgspec

from rota.core.states import Outcome, RunState


class OnLost(StrEnum):
    """Treatment of a run whose worker was lost: retry it, or fail it, since it may have had effects."""

    RETRY = "retry"
    FAIL = "fail"


def _may_repeat(mode: OnLost) -> bool:
    """Return whether an attempt that may have been interrupted halfway may be made again."""
    match mode:
        case OnLost.RETRY:
            return True
        case OnLost.FAIL:
            return False
        case _:
            assert_never(mode)


ON_LOST = tuple(mode.value for mode in OnLost)
AT_MOST_ONCE = frozenset(mode.value for mode in OnLost if not _may_repeat(mode))
"""Stored words of `on_lost` whose runs are not repeated once they began, and are claimed alone.

A word of a newer program is not among them: it counts as `retry`, and does not stop the reaper. Statements in SQL
compare with the same words (tests/shape/test_modes.py).
"""


class Lease(msgspec.Struct, frozen=True):
    """Held run as the database has it while its row is locked.

    `overdue`: the time of the external party that has it is over, and the reaper takes it away.
    """

    run_id: str
    fence: int
    attempt: int
    worker_id: str
    claimed_at: int
    cancel_at: int | None
    max_attempts: int
    on_lost: str
    queue: str
    job: str
    need: str | None = None
    overdue: int = 0


class Wait(msgspec.Struct, frozen=True, gc=False):
    """Wait for an external worker for at most `timeout` (µs): until it ends the run or, with `step`, that step."""

    timeout: int
    step: str | None = None


class Report(msgspec.Struct, frozen=True, gc=False):
    """Report of a worker on an attempt. `retry_in` (µs) is the delay that its retry policy chose after a failure.

    `limited`: the success releases slots of limits; if a report does not say so, the reaper releases them. `wait`: the
    run is handed over to an external worker instead of ending; if it was asked to stop meanwhile, it ends as cancelled.
    `part`: the step of a pipeline that the report is about; `advances`: that step is done, and the run goes on with the
    next. `adapts`: `retry_in` is the default backoff, which adapts to the schedule of the run, if it has one. `job` and
    `queue` are the run's, by which a success is counted.
    """

    run_id: str
    fence: int
    outcome: Outcome
    busy: int = 0
    result: str | None = None
    error: str | None = None
    retry_in: int | None = None
    began: bool = True
    measures: str | None = None
    limited: bool = False
    wait: Wait | None = None
    part: str | None = None
    advances: bool = False
    adapts: bool = False
    job: str = ""
    queue: str = ""


class SettledAttempt(NamedTuple):
    """Outcome of an attempt, how its run ended with it, if it did, and the run's job and queue."""

    outcome: Outcome
    state: RunState | None
    job: str
    queue: str


class EndedRun(NamedTuple):
    """Final state of a run, and its job and queue."""

    state: RunState
    job: str
    queue: str


class Requeue(msgspec.Struct, frozen=True):
    """Return to the queue, due in `delay` (µs); with `keeps_place`, at the place it had before it was claimed."""

    delay: int
    attempt: int
    fence: int
    keeps_place: bool = False


class End(msgspec.Struct, frozen=True):
    state: RunState
    fence: int


def is_handed_over(lease: Lease, report: Report) -> bool:
    """Return whether the report hands the run to an external worker; a run that was asked to stop ends instead."""
    return report.wait is not None and lease.cancel_at is None


def after_report(lease: Lease, report: Report) -> Requeue | End:
    """Decide the next state of the run from its locked lease and the worker's report."""
    outcome = report.outcome
    if outcome is Outcome.SUCCEEDED:  # also while cancelling: the work is done
        return End(RunState.SUCCEEDED, lease.fence)
    # A hand-back, a loss or a deadline that is over takes the lease away. The fence grows, so that a late report of the
    # old holder is refused.
    taken_away = lease.fence + (outcome in (Outcome.HANDED_BACK, Outcome.LOST) or lease.overdue > 0)
    if lease.cancel_at is not None or outcome is Outcome.CANCELLED:
        return End(RunState.CANCELLED, taken_away)
    if outcome is Outcome.HANDED_BACK:
        if report.began and lease.on_lost in AT_MOST_ONCE:
            return End(RunState.EXPIRED, taken_away)
        return Requeue(0, lease.attempt - 1, taken_away, keeps_place=True)
    if outcome is Outcome.LOST:  # costs an attempt, and is queued again without delay
        if lease.on_lost in AT_MOST_ONCE or lease.attempt >= lease.max_attempts:
            return End(RunState.EXPIRED, taken_away)
        return Requeue(0, lease.attempt, taken_away, keeps_place=True)
    if outcome is Outcome.SNOOZED:
        return Requeue(report.retry_in or 0, lease.attempt - 1, taken_away, keeps_place=report.advances)
    if report.retry_in is not None:
        return Requeue(report.retry_in, lease.attempt, taken_away)
    return End(RunState.TIMED_OUT if outcome is Outcome.TIMED_OUT else RunState.FAILED, taken_away)
