"""Overlap and failure policies: decide about one plan time, given the runs of its lane."""

from __future__ import annotations

from typing import assert_never

import msgspec

from rota.core.schedules.policies import Failure, FailureMode, Overlap, OverlapMode
from rota.values.durations import format_duration, in_micros


class LiveRun(msgspec.Struct, frozen=True, gc=False):
    """Run that is not final. `begun`: claimed at least once; `claimed`: now; `followed`: another one waits for it."""

    id: str
    begun: bool = False
    claimed: bool = False
    followed: bool = False


class Lane(msgspec.Struct, frozen=True, gc=False):
    """Runs of a schedule for one scope: those that are not final, and how the last final one ended.

    `failures` in a row; `attempt`, `finished_at` of the last one; `skips`: plan times skipped since because it failed.
    """

    live: tuple[LiveRun, ...] = ()
    failed: bool = False
    failures: int = 0
    attempt: int = 0
    finished_at: int = 0
    skips: int = 0

    def with_run(self, run: LiveRun, after: tuple[str, ...] = ()) -> Lane:
        live, unmarked = [*self.live, run], set(after)
        for place in range(len(live) - 2, -1, -1):  # from the end: there may be thousands, and mostly it is the last
            if not unmarked:
                break
            if live[place].id in unmarked:
                unmarked.remove(live[place].id)
                live[place] = msgspec.structs.replace(live[place], followed=True)
        return msgspec.structs.replace(self, live=tuple(live))

    def without(self, run_ids: tuple[str, ...]) -> Lane:
        return msgspec.structs.replace(self, live=tuple(run for run in self.live if run.id not in run_ids))

    def ended(self, *, failed: bool, neutral: bool, attempt: int, finished_at: int) -> Lane:
        """Return the lane after one more end. A `neutral` end, by a policy, is neither a failure nor a recovery."""
        if finished_at < self.finished_at:
            return self
        failures = self.failures + 1 if failed else self.failures if neutral else 0
        return Lane(self.live, failed, failures, attempt, finished_at)


class Create(msgspec.Struct, frozen=True, gc=False):
    """Decision to create a run.

    `single`: it has no retries of its own. `after`: it waits for the end of these runs. `unlimited`: the concurrency
    limits of its job and its schedule do not apply. `supersedes` are ended, since no worker has them; `cancels` are
    asked to stop.
    """

    attempt: int = 1
    single: bool = False
    after: tuple[str, ...] = ()
    unlimited: bool = False
    supersedes: tuple[str, ...] = ()
    cancels: tuple[str, ...] = ()

    @property
    def displaces(self) -> tuple[str, ...]:
        """Runs that make way for it: limits no longer count them, and their keys pass on to it."""
        return (*self.supersedes, *self.cancels)


class Skip(msgspec.Struct, frozen=True, gc=False):
    """Decision to skip the plan time; `failure`: because of the failure policy."""

    reason: str
    failure: bool = False


class Pause(msgspec.Struct, frozen=True):
    """Decision to pause the schedule here, and to skip the plan time."""

    reason: str


def decide(
    overlap: Overlap, failure: Failure, lane: Lane, now: int, max_attempts: int, *, forced: bool = False
) -> Create | Skip | Pause:
    """Decide about one plan time: first by overlap, then by failure.

    `max_attempts` are the job's, unless the failure policy has its own; `forced` ignores both policies.
    """
    if forced:
        return Create()
    room = _overlap(overlap, lane)
    if isinstance(room, Skip):
        return room
    return _failure(failure, lane, now, max_attempts, room)


def _overlap(policy: Overlap, lane: Lane) -> Create | Skip:
    live = lane.live
    if not live:
        return Create()
    mode = policy.mode
    match mode:
        case OverlapMode.ALLOW:
            return Create()
        case OverlapMode.SKIP:
            return Skip(f"overlap: run {live[-1].id} is not over")
        case OverlapMode.PARALLEL:
            if policy.max_overlap is not None and len(live) >= policy.max_overlap:
                return Skip(f"overlap: {len(live)} runs are not over, and {policy.max_overlap} may be at once")
            return Create(unlimited=True)
        case OverlapMode.CANCEL_PREVIOUS:
            waiting = tuple(run.id for run in live if not run.claimed)
            running = tuple(run.id for run in live if run.claimed)
            return Create(after=running, supersedes=waiting, cancels=running)
        case OverlapMode.QUEUE_ONE if any(not run.begun for run in live):
            waiting_run = next(run.id for run in live if not run.begun)
            return Skip(f"overlap: run {waiting_run} waits already")
        case OverlapMode.QUEUE_ONE | OverlapMode.QUEUE_ALL:
            return Create(after=tuple(run.id for run in live if not run.followed))
        case _:
            assert_never(mode)


def _failure(policy: Failure, lane: Lane, now: int, max_attempts: int, create: Create) -> Create | Skip | Pause:
    mode = policy.mode
    match mode:
        case FailureMode.RUN_NEW:
            return create
        case FailureMode.RETRY:
            most = policy.max_attempts or max_attempts
            attempt = lane.attempt + 1 if lane.failed and lane.attempt < most else 1
            return msgspec.structs.replace(create, attempt=attempt, single=True)
        case FailureMode.HALF_OPEN:
            return create if lane.failures < policy.threshold else _half_open(policy, lane, now, create)
        case FailureMode.SKIP:
            if lane.failed and lane.skips == 0:
                return Skip("failure: the last run failed, so one plan time is skipped", failure=True)
            return create
        case FailureMode.BACKOFF:
            return _backoff(policy, lane, now, create) if lane.failed else create
        case FailureMode.PAUSE:
            if lane.failed and lane.skips == 0:  # a skip since then: it was resumed, and may run again
                return Pause("failure: the last run failed")
            return create
        case _:
            assert_never(mode)


def _backoff(policy: Failure, lane: Lane, now: int, create: Create) -> Create | Skip:
    wait = policy.backoff.delay(lane.failures, 0.0)
    if now >= lane.finished_at + in_micros(wait):
        return create
    why = f"{lane.failures} failures in a row" if lane.failures > 1 else "the last run failed"
    return Skip(f"failure: {why}, so plan times are skipped for {format_duration(wait)}", failure=True)


def _half_open(policy: Failure, lane: Lane, now: int, create: Create) -> Create | Skip:
    why = f"failure: {lane.failures} failures in a row"
    if lane.live:
        return Skip(f"{why}, and run {lane.live[-1].id} is the probe", failure=True)
    if now < lane.finished_at + in_micros(policy.cooldown):
        return Skip(f"{why}, so one probe is let through per {format_duration(policy.cooldown)}", failure=True)
    return create
