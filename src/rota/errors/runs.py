"""Errors of runs: their ids, leases, states, keys and limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar

from rota.errors.families import Conflict, Invalid, NotFound, Unavailable, did_you_mean

_SHOWN_CANDIDATES = 5


class UnknownRun(NotFound):
    """The run never existed, or was pruned."""

    code = "unknown-run"

    def __init__(self, run_id: str) -> None:
        hint = "give the beginning or the end of an id; the run may have been pruned; `rota run ls` lists runs"
        super().__init__(f"there is no run {run_id!r}", hint=hint)


class AmbiguousRun(Conflict):
    """The shortened id matches more than one run."""

    code = "ambiguous-run"

    def __init__(self, part: str, candidates: Sequence[str]) -> None:
        some = ", ".join(candidates[:_SHOWN_CANDIDATES]) + (", …" if len(candidates) > _SHOWN_CANDIDATES else "")
        super().__init__(f"{part!r} is the beginning or end of more than one run", hint=f"give more of the id: {some}")


class LeaseLost(Conflict):
    """The write came from a lease that is no longer the run's current one."""

    code = "stale-lease"

    def __init__(self, run_id: str, fence: int, state: str | None = None) -> None:
        hint = "stop: another attempt owns it" if state is None else f"stop: the run is {state}"
        super().__init__(f"fence {fence} of run {run_id} is no longer current", hint=hint)
        self.run_id = run_id
        self.fence = fence


class AlreadyReported(Conflict):
    """The attempt was reported before under the same fence, with another outcome."""

    code = "already-reported"

    def __init__(self, run_id: str, fence: int, outcome: str) -> None:
        super().__init__(
            f"run {run_id} was reported as {outcome} under fence {fence} already", hint="the first report stands"
        )


class NotHandedOver(Conflict):
    """An external worker reported a run whose handler has not ended yet."""

    code = "not-handed-over"

    def __init__(self, run_id: str, worker_id: str) -> None:
        hint = "try again in a moment, when its handler has ended"
        super().__init__(f"worker {worker_id} still holds run {run_id}", hint=hint)


class NotAsked(Conflict):
    """An external worker reported a run as cancelled that nobody asked to stop."""

    code = "not-asked"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"nobody asked run {run_id} to stop", hint="fail it instead, without a retry")


class RunIsFinal(Conflict):
    """The run has ended, and no longer changes."""

    code = "run-is-final"

    def __init__(self, run_id: str, state: str, wanted: str) -> None:
        super().__init__(f"run {run_id} is {state} already and cannot be {wanted}", hint="a final run never changes")


class RunNotFinal(Conflict):
    """The run has not ended, and cannot be retried yet."""

    code = "run-not-final"

    def __init__(self, run_id: str, state: str) -> None:
        hint = "wait until it has ended" if state == "cancelling" else "cancel it first, or wait until it has ended"
        super().__init__(f"run {run_id} is {state}; only a finished run can be retried", hint=hint)


class NotCancellable(Conflict):
    """The run has begun, and its job does not support cancellation."""

    code = "not-cancellable"

    def __init__(self, run_id: str, job: str) -> None:
        super().__init__(f"run {run_id} has begun and job {job!r} does not support cancelling")


class DuplicateRun(Conflict):
    """Another run holds the unique key and `on_conflict` is `reject`, or the run to retry is in progress."""

    code = "duplicate-run"

    def __init__(self, job: str, holder: str) -> None:
        super().__init__(f"job {job!r} has a run with this unique key already: {holder}")
        self.holder = holder


class NothingToRetry(Conflict):
    """The newest run of the job did not fail, has not ended, or does not exist."""

    code = "nothing-to-retry"

    def __init__(self, job: str, run_id: str | None, state: str | None) -> None:
        """Build the message; `state` is how the newest run ended, None while it runs; no run, no `run_id`."""
        if run_id is None:
            super().__init__(f"job {job!r} has no run to retry", hint="enqueue one: `rota run enqueue`")
        elif state is None:
            super().__init__(f"run {run_id} of job {job!r} has not ended", hint="wait until it has, or cancel it first")
        else:
            hint = f"to run it again anyway: `rota run retry {run_id}`"
            super().__init__(f"the newest run of job {job!r}, {run_id}, has {state}: it did not fail", hint=hint)


class AlreadyRetried(Conflict):
    """Another run is a retry of this one. Raised by bulk retries only; a single run may be retried again and again."""

    code = "already-retried"

    def __init__(self, run_id: str, retry: str) -> None:
        super().__init__(f"run {run_id} was retried already, by run {retry}", hint="retry that one, if it failed")
        self.retry = retry


class RunIsKept(Conflict):
    """The run has ended, but something still needs it. Raised by purges only."""

    code = "run-is-kept"

    def __init__(self, reason: str) -> None:
        super().__init__(f"kept: {reason}")


class BulkMismatch(Conflict):
    """More runs match than the caller expected."""

    code = "bulk-mismatch"

    def __init__(self, expected: int, what: str = "runs") -> None:
        hint = "nothing was changed; count again, and pass the new number"
        super().__init__(f"more {what} match than the {expected} that were expected", hint=hint)


class LimitReached(Conflict):
    """A limit is full and `when_full` is `reject`, or its queue is full."""

    code: ClassVar[str] = "limit-reached"

    def __init__(
        self, job: str, key: str, most: int, reason: str, *, scope: str | None = None, holder: str | None = None
    ) -> None:
        whose = "" if scope is None else f" for {scope}"
        ended = "a run has ended" if holder is None else f"run {holder} has ended"
        super().__init__(f"job {job!r} takes no more runs{whose} now: {reason}", hint=f"try again when {ended}")
        self.key = key
        self.max = most
        self.scope = scope
        self.holder = holder


class QuotaExceeded(LimitReached):
    """The scope's quota of queued runs, over all jobs, is used up."""

    code = "quota-exceeded"


class NotRepeatable(Conflict):
    """A job with `repeatable=False` has succeeded, or is in progress, for this scope."""

    code = "not-repeatable"

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(f"job {name!r} is not repeatable, and run {holder} has succeeded or is in progress")
        self.holder = holder


class StillRunning(Unavailable):
    """The run did not end within the caller's timeout."""

    exit_code, code = 75, "still-running"

    def __init__(self, run_id: str, state: str) -> None:
        super().__init__(f"run {run_id} is still {state}")
        self.run_id = run_id
        self.state = state


class RunFailed(Conflict):
    """The run whose result was asked for did not succeed.

    `type`, `message` and `traceback` are those of its handler's error; `state` and `reason` tell how the run ended.
    """

    code = "run-failed"

    def __init__(
        self,
        run_id: str,
        job: str,
        state: str,
        *,
        type: str | None = None,  # noqa: A002 - the word that people look for
        message: str | None = None,
        traceback: str | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message or reason or "it has no result")
        self.run_id = run_id
        self.job = job
        self.state = state
        self.type = type
        self.traceback = traceback
        self.reason = reason
        if traceback is not None:
            self.add_note(traceback)

    def __str__(self) -> str:
        cause = self.message if self.type is None else f"{self.type}: {self.message}"
        return f"run {self.run_id} of job {self.job!r} is {self.state}: {cause}"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the facts, so that another process may raise it again."""
        again = partial(RunFailed, type=self.type, message=self.message, traceback=self.traceback, reason=self.reason)
        return again, (self.run_id, self.job, self.state)


class BlocksEventLoop(Conflict):
    """A synchronous call was made in a thread whose event loop is running, and would stop everything on it."""

    code = "blocks-event-loop"

    def __init__(self, call: str, instead: str) -> None:
        super().__init__(
            f"{call} would block the event loop that runs in this thread",
            hint=f"use {instead}, or call it in a thread: `await asyncio.to_thread(…)`",
        )


class UnknownStep(Invalid):
    """The run, or its job, has no step of this id."""

    code = "unknown-step"

    def __init__(self, step: str, known: Iterable[str]) -> None:
        names = list(known)
        known_ones = f"known: {', '.join(names[:10])}" if names else "there are no steps"
        hint = did_you_mean(step, names) or known_ones
        super().__init__(f"there is no step {step!r}", hint=hint)


class StepTwice(Invalid):
    """A handler opened the same step twice in one attempt."""

    code = "step-twice"

    def __init__(self, step: str) -> None:
        super().__init__(
            f"step {step!r} was opened already in this attempt", hint="give each its own id, such as page-1, page-2"
        )


class KeyReused(Invalid):
    """The idempotency key was used for a different request."""

    code = "idempotency-key-reused"

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used for another request", hint="use a new key for new content")
