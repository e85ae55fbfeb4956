"""How an attempt's end changes its run: a worker's report, or a lease that was lost, becomes the next state."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

import msgspec

from rota.core.states import Outcome, RunState


class OnLost(StrEnum):
    """What becomes of a run whose worker was lost: it is tried again, or has failed, since it may have had effects."""

    RETRY = "retry"
    FAIL = "fail"


ON_LOST = tuple(mode.value for mode in OnLost)


class Lease(msgspec.Struct, frozen=True):
    """A held run as the database knows it while its row is locked."""

    run_id: str
    fence: int
    attempt: int
    worker_id: str
    claimed_at: int
    cancel_at: int | None
    max_attempts: int
    on_lost: str
    queue: str
    need: str | None = None


class Wait(msgspec.Struct, frozen=True, gc=False):
    """In other hands for `timeout` (µs) at most: until these end the run, or the `step`, and it goes on after that."""

    timeout: int
    step: str | None = None


class Report(msgspec.Struct, frozen=True, gc=False):
    """What a worker says of an attempt. `retry_in` (µs) is its own policy's answer to a failure.

    `limited`: its success gives slots back. Where nobody says so, the reaper finds out. `wait`: it is not over, but
    handed over to somebody outside; if it was asked to stop, it has put itself off, and that ends it. `part`: the step
    of a pipeline that it is about; `advances`: that is done, and the run goes on with the next one.
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


class Requeue(msgspec.Struct, frozen=True):
    """Back to the queue, due in `delay` (µs); with `keeps_place`, where it stood before it was claimed."""

    delay: int
    attempt: int
    fence: int
    keeps_place: bool = False


class End(msgspec.Struct, frozen=True):
    state: RunState
    fence: int


def is_handed_over(lease: Lease, report: Report) -> bool:
    return report.wait is not None and lease.cancel_at is None


def _may_repeat(lease: Lease) -> bool:
    """Return whether an attempt that may have been interrupted halfway may be made again."""
    mode = OnLost(lease.on_lost)
    match mode:
        case OnLost.RETRY:
            return True
        case OnLost.FAIL:
            return False
        case _:
            assert_never(mode)


def after_report(lease: Lease, report: Report) -> Requeue | End:
    outcome = report.outcome
    if outcome is Outcome.SUCCEEDED:  # also while cancelling: it is what happened
        return End(RunState.SUCCEEDED, lease.fence)
    taken_away = lease.fence + (outcome in (Outcome.HANDED_BACK, Outcome.LOST))
    if lease.cancel_at is not None or outcome is Outcome.CANCELLED:
        return End(RunState.CANCELLED, taken_away)
    if outcome is Outcome.HANDED_BACK:
        if report.began and not _may_repeat(lease):
            return End(RunState.EXPIRED, taken_away)
        return Requeue(0, lease.attempt - 1, taken_away, keeps_place=True)
    if outcome is Outcome.LOST:  # costs its attempt, and is queued again at once
        if not _may_repeat(lease) or lease.attempt >= lease.max_attempts:
            return End(RunState.EXPIRED, taken_away)
        return Requeue(0, lease.attempt, taken_away, keeps_place=True)
    if outcome is Outcome.SNOOZED:
        return Requeue(report.retry_in or 0, lease.attempt - 1, lease.fence, keeps_place=report.advances)
    if report.retry_in is not None:
        return Requeue(report.retry_in, lease.attempt, lease.fence)
    return End(RunState.TIMED_OUT if outcome is Outcome.TIMED_OUT else RunState.FAILED, lease.fence)
