"""Exceptions that a handler raises to control its run: retry, fail, snooze, hand over."""

from __future__ import annotations

from datetime import timedelta

from rota.values.durations import Duration, format_duration, parse_duration
from rota.values.names import checked_timeout


class Signal(Exception):
    """Root of the exceptions by which a handler controls its run. `code` names the error for programs."""

    code: str | None = None


FINAL = "final"


def mark_final(error: BaseException) -> None:
    """Mark an exception of a handler as one that its job does not retry; the mark crosses into a worker's process."""
    error.__rota_signal__ = {"kind": FINAL}  # type: ignore[attr-defined]


def is_final(error: BaseException) -> bool:
    """Return whether the job does not retry this exception."""
    return (getattr(error, "__rota_signal__", None) or {}).get("kind") == FINAL


class Retry(Signal):
    """Failure to be retried, `after` this long instead of the backoff. It costs an attempt like any failure."""

    def __init__(
        self, message: str = "asked to be retried", *, after: Duration | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.after: timedelta | None = None if after is None else parse_duration(after)
        self.code = code


class NotBefore(Retry):
    """Failure to be retried by the policy, but not before `after` has passed."""


class Fail(Signal):
    """Permanent failure: no retry would help."""

    def __init__(self, *words: object, code: str | None = None) -> None:
        super().__init__(*words)
        self.code = code


class Snooze(Signal):
    """Request to run again `after` this long, because there is nothing to do yet. It costs no attempt."""

    def __init__(self, after: Duration, message: str = "snoozed") -> None:
        super().__init__(message)
        self.after = parse_duration(after)


class Cancelled(BaseException):
    """Raised by `ctx.checkpoint()` once the run is asked to stop. Like asyncio's, `except Exception` lets it pass."""


class HandedOver(BaseException):
    """Raised by `ctx.wait_for_external()`: the handler ends, its run does not. Not an `Exception`."""

    def __init__(self, timeout: Duration, step: str | None = None) -> None:
        super().__init__("handed over to an external worker")
        self.timeout = checked_timeout(timeout)
        self.step = step


class StepTimedOut(Exception):
    """Timeout of a step. Retried like any timeout, unless the handler catches it."""


def step_timed_out(step: str, limit: timedelta) -> StepTimedOut:
    return StepTimedOut(f"step {step!r} took longer than {format_duration(limit)}")
