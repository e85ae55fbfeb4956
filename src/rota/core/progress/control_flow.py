"""What a handler raises to say more than "it went wrong"."""

from __future__ import annotations

from datetime import timedelta

from rota.values.durations import Duration, parse_duration
from rota.values.names import checked_timeout


class Signal(Exception):
    """The root of what a handler raises to steer its run. `code`: what went wrong, in a word for programs."""

    code: str | None = None


class Retry(Signal):
    """Failed; try again, `after` this long instead of what the backoff says. It costs an attempt like any failure."""

    def __init__(
        self, message: str = "asked to be retried", *, after: Duration | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.after: timedelta | None = None if after is None else parse_duration(after)
        self.code = code


class NotBefore(Retry):
    """Failed; tried again as the policy says, but not before `after` has passed."""


class Fail(Signal):
    """Failed for good: no retry would help."""

    def __init__(self, *words: object, code: str | None = None) -> None:
        super().__init__(*words)
        self.code = code


class Snooze(Signal):
    """Nothing to do yet: come back `after` this long. It costs no attempt."""

    def __init__(self, after: Duration, message: str = "snoozed") -> None:
        super().__init__(message)
        self.after = parse_duration(after)


class Cancelled(BaseException):
    """Raised by `ctx.checkpoint()` once the run is asked to stop. Like asyncio's, `except Exception` lets it pass."""


class HandedOver(BaseException):
    """Raised by `ctx.wait_for_external()`: the handler is over, its run is not. Not an `Exception`."""

    def __init__(self, timeout: Duration, step: str | None = None) -> None:
        super().__init__("handed over to somebody outside")
        self.timeout = checked_timeout(timeout)
        self.step = step


class StepTimedOut(Exception):
    """A step took longer than it may. Retried like any timeout, unless the handler knows better."""


def step_timed_out(step: str, limit: timedelta) -> StepTimedOut:
    return StepTimedOut(f"step {step!r} took longer than {limit.total_seconds():g}s")
