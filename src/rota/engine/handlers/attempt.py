"""State of one attempt, and the report that its outcome becomes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from rota.core.jobs.pipelines import within
from rota.core.jobs.retry import RetryPolicy, rest_before_retry
from rota.core.progress.control_flow import (
    Cancelled,
    Fail,
    HandedOver,
    NotBefore,
    Retry,
    Snooze,
    StepTimedOut,
    is_final,
    step_timed_out,
)
from rota.core.progress.steps import StepDefinition
from rota.core.runs.claim import Claim
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import Report, Wait
from rota.core.runs.redaction import without_secrets
from rota.core.runs.run import Measures, Overrides, RunError
from rota.core.states import Outcome
from rota.engine.handlers.context import Standing
from rota.engine.handlers.describe_error import error_of
from rota.errors import BadPayload, LeaseLost
from rota.registry.jobs import Handler
from rota.values import json
from rota.values.clock import Clock
from rota.values.durations import format_duration, in_micros, span
from rota.values.json import Limits

if TYPE_CHECKING:
    from rota.engine.handlers.context_backend import WorkerBackend


class UnreadablePayload(Fail):
    """The payload does not fit the handler's signature; no retry would make it fit."""

    def __init__(self, error: BadPayload) -> None:
        super().__init__(str(error))


class RaisedElsewhere(Exception):
    """An exception of a handler in a child process, known only by its description."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error.message)
        self.error = error


class Attempt(Standing):
    """State of one attempt.

    `stopped` is the reason if the worker interrupts it: that decides the outcome, not the exception. `superseded`: a
    policy has cancelled it.
    """

    __slots__ = (
        "backend",
        "began_at",
        "claim",
        "finished",
        "handler",
        "measures",
        "overdue",
        "reported",
        "stopped",
        "superseded",
        "task",
        "timers",
    )  # fmt: skip

    def __init__(self, claim: Claim, handler: Handler) -> None:
        super().__init__()
        self.claim = claim
        self.handler = handler
        self.stopped: Outcome | None = None
        self.began_at: float | None = None
        self.task: asyncio.Task[None] | None = None
        self.timers: list[asyncio.TimerHandle] | None = None
        self.reported = False
        self.superseded = False
        self.finished = False
        self.overdue: StepDefinition | None = None
        self.backend: WorkerBackend | None = None
        self.measures: Measures | None = None

    def after(self, seconds: float, act: Callable[..., None], *arguments: object) -> None:
        """Call `act(attempt, …)` after `seconds`, unless the attempt is over by then."""
        timer = asyncio.get_running_loop().call_later(seconds, act, self, *arguments)
        self.timers = [*(self.timers or ()), timer]

    def cancel_timers(self) -> None:
        for timer in self.timers or ():
            timer.cancel()
        if self.backend is not None:
            self.backend.close()

    def finish(self) -> None:
        """Mark the end as committed: it was written in the handler's own transaction."""
        self.finished = True

    @property
    def key(self) -> str:
        return f"{self.claim.run_id}:{self.claim.fence}"

    @property
    def overrides(self) -> Overrides:
        text = self.claim.overrides
        return msgspec.json.decode(text, type=Overrides) if text else Overrides()

    @property
    def timeout(self) -> timedelta | None:
        if self.claim.overrides is None:
            return self.handler.definition.timeout
        return self.overrides.timeout or self.handler.definition.timeout

    @property
    def retry(self) -> RetryPolicy:
        if self.claim.overrides is None:
            return self.handler.definition.retry
        return self.overrides.retry or self.handler.definition.retry


class Reports:
    """Builder of reports for attempts; draws the jitter of retries."""

    def __init__(self, clock: Clock, limits: Limits, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._limits = limits
        self._jitter = jitter

    def success(self, attempt: Attempt, result: object) -> Report:
        if result is None:
            text = None
        else:
            try:
                text = json.encode(result, self._limits)
            except BadPayload as error:
                return self._unusable_result(attempt, error)
        return self.succeeded(attempt, text)

    def succeeded(self, attempt: Attempt, result: str | None) -> Report:
        """Report success with a result that is JSON already."""
        claim = attempt.claim
        return Report(
            claim.run_id,
            claim.fence,
            Outcome.SUCCEEDED,
            self.busy(attempt),
            result,
            measures=_measured(attempt),
            limited=claim.limited,
            part=claim.part,
            job=claim.pipeline or claim.job,
            queue=claim.queue,
        )

    def _unusable_result(self, attempt: Attempt, error: BadPayload) -> Report:
        """Report a failure that is not retried: the work is done, only its result cannot be stored."""
        problem = RunError(type="BadResult", message=f"the result cannot be stored: {error.problem}", code="bad_result")
        return self._report(attempt, Outcome.FAILED, problem)

    def failure(self, attempt: Attempt, error: BaseException) -> Report | None:
        """Report an exception. Return None if the lease is gone: then nobody may be told."""
        if attempt.lost or isinstance(error, LeaseLost):
            return None
        if attempt.stopped is not None:
            return self.stopped(attempt, attempt.stopped)
        match error:
            case Snooze():
                return self._report(attempt, Outcome.SNOOZED, None, retry_in=error.after)
            case HandedOver():
                step = None if error.step is None else within(attempt.claim.part, error.step)
                wait = Wait(in_micros(error.timeout), step)
                return msgspec.structs.replace(self._report(attempt, Outcome.SNOOZED, None), wait=wait)
            case Cancelled() if attempt.cancelled:
                return self.stopped(attempt, Outcome.CANCELLED)
            case StepTimedOut():
                return self._retryable(attempt, Outcome.TIMED_OUT, error_of(error))
            case Fail():
                return self._report(attempt, Outcome.FAILED, error_of(error))
            case NotBefore() | Retry():
                return self._asked_again(attempt, error)
            case _:
                described = error.error if isinstance(error, RaisedElsewhere) else error_of(error)
                if is_final(error):
                    return self._report(attempt, Outcome.FAILED, described)
                return self._retryable(attempt, Outcome.FAILED, described)

    def _asked_again(self, attempt: Attempt, error: NotBefore | Retry) -> Report:
        """Report a retry that the handler requested: at a time it named, or not before one, with the policy's delay."""
        if isinstance(error, NotBefore):
            return self._retryable(attempt, Outcome.FAILED, error_of(error), at_least=error.after)
        return self._retryable(attempt, Outcome.FAILED, error_of(error), error.after)

    def indescribable(self, attempt: Attempt, error: Exception) -> Report | None:
        """Report a failure without the handler's own objects: one of them broke the ordinary report."""
        if attempt.lost:
            return None
        attempt.counters = None
        problem = RunError(
            type="BadResult", message=f"the outcome cannot be described: {type(error).__name__}", code="bad_result"
        )
        return self._report(attempt, Outcome.FAILED, problem)

    def stopped(self, attempt: Attempt, outcome: Outcome) -> Report:
        if outcome is Outcome.TIMED_OUT:
            return self._retryable(attempt, outcome, _timed_out(attempt))
        return self._report(attempt, outcome, None)

    def hand_back(self, claim: Claim) -> Report:
        """Report that a claimed run never began here."""
        return Report(claim.run_id, claim.fence, Outcome.HANDED_BACK, began=False)

    def _retryable(
        self,
        attempt: Attempt,
        outcome: Outcome,
        error: RunError,
        after: timedelta | None = None,
        at_least: timedelta | None = None,
    ) -> Report:
        claim = attempt.claim
        retry_in = rest_before_retry(attempt.retry, claim.max_attempts, claim.attempt, self._jitter(), after)
        if retry_in is not None and at_least is not None:
            retry_in = max(retry_in, at_least)
        chosen = after is not None or at_least is not None or not attempt.retry.has_default_backoff
        return self._report(attempt, outcome, error, retry_in, adapts=not chosen and claim.plan_time is not None)

    def _report(
        self,
        attempt: Attempt,
        outcome: Outcome,
        error: RunError | None,
        retry_in: timedelta | None = None,
        *,
        adapts: bool = False,
    ) -> Report:
        claim = attempt.claim
        return Report(
            claim.run_id,
            claim.fence,
            outcome,
            self.busy(attempt),
            error=None if error is None else _stored(error, claim.payload),
            retry_in=None if retry_in is None else in_micros(retry_in),
            began=attempt.began_at is not None,
            measures=_measured(attempt),
            adapts=adapts,
            job=claim.run_job,
            queue=claim.queue,
        )

    def busy(self, attempt: Attempt) -> int:
        if attempt.began_at is None:
            return 0
        return int((self._clock.monotonic() - attempt.began_at) * 1_000_000)


def _stored(error: RunError, payload: str) -> str:
    """Encode `error` with a fingerprint free of secrets.

    People who may not see secrets see the fingerprint, and could test guesses against it.
    """
    return stored_error(error, telling=without_secrets(error.message, payload))


def _timed_out(attempt: Attempt) -> RunError:
    if attempt.overdue is not None and attempt.overdue.timeout is not None:
        return error_of(step_timed_out(attempt.overdue.id, attempt.overdue.timeout))
    limit = format_duration(attempt.timeout or timedelta(0))
    return RunError(type="TimedOut", message=f"longer than {limit}", code="timed_out")


def describe(attempt: Attempt, report: Report) -> str:
    """Return one line about a failed attempt for the worker's log."""
    claim = attempt.claim
    error = msgspec.json.decode(report.error or "null", type=RunError | None)
    problem = (
        without_secrets(f"{error.type}: {error.message.partition(chr(10))[0]:.300}", claim.payload) if error else ""
    )
    then = "no retry"
    if report.retry_in is not None:
        rest = span(timedelta(microseconds=report.retry_in))
        then = f"retry in {rest}" if not report.adapts else f"retry in {rest}, or sooner by its schedule"
    return (
        f"run {claim.run_id} of {claim.job}: attempt {claim.attempt} of {claim.max_attempts} "
        f"{report.outcome.value}, {then}: {problem}"
    )


def _measured(attempt: Attempt) -> str | None:
    counters = attempt.counters or {}
    if not counters and attempt.measures is None:
        return None
    own = attempt.measures or Measures()
    return msgspec.json.encode(Measures(own.cpu_time_ms, own.memory_peak_mb, {**own.counters, **counters})).decode()
