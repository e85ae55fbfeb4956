"""Local retries: call a handler that raised again inside the same attempt, as often as its job allows."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from rota.core.progress.control_flow import Fail, Retry, Snooze, StepTimedOut, is_final
from rota.core.runs.run import Measures
from rota.engine.handlers.attempt import Attempt, RaisedElsewhere
from rota.engine.handlers.describe_error import error_of
from rota.errors import LeaseLost

log = logging.getLogger("rota.worker")

COUNTER = "local_retries"


async def repeated(attempt: Attempt, call: Callable[[Attempt], Awaitable[object]]) -> object:
    """Call until it succeeds, without delay and under the attempt's one timeout; measures are summed over all calls."""
    remaining = attempt.handler.definition.local_retries
    spent: Measures | None = None
    while True:
        try:
            return await call(attempt)
        except Exception as error:
            if not remaining or not _worth_repeating(attempt, error):
                raise
            remaining -= 1
            _note(attempt, error, remaining)
            if attempt.backend is not None:
                attempt.backend.begin_again()
        finally:
            attempt.measures = spent = _together(spent, attempt.measures)


def _worth_repeating(attempt: Attempt, error: Exception) -> bool:
    """Return whether a local retry makes sense.

    It does not for control flow (`Retry`, `Snooze`), a dead process or a limit, nor if the run must stop.
    """
    if attempt.stopped is not None or attempt.cancelled or attempt.lost or attempt.shutting_down or attempt.finished:
        return False
    if is_final(error):
        return False
    if isinstance(error, RaisedElsewhere):
        return error.error.code is None
    return not isinstance(error, Fail | Retry | Snooze | StepTimedOut | LeaseLost)


def _note(attempt: Attempt, error: Exception, remaining: int) -> None:
    counters = attempt.counters = attempt.counters if attempt.counters is not None else {}
    counters[COUNTER] = counters.get(COUNTER, 0) + 1
    description = error.error if isinstance(error, RaisedElsewhere) else error_of(error)
    claim, count = attempt.claim, attempt.handler.definition.local_retries
    log.warning(
        "run %s of %s: attempt %d raised %s: %.300s; retrying locally (%d of %d)",
        *(
            claim.run_id,
            claim.job,
            claim.attempt,
            description.type,
            description.message.partition("\n")[0],
            count - remaining,
            count,
        ),
    )


def _together(before: Measures | None, now: Measures | None) -> Measures | None:
    """Add the measures of two calls. A call that was interrupted has none."""
    if before is None or now is None or before is now:
        return now or before
    counters = {
        name: before.counters.get(name, 0) + now.counters.get(name, 0) for name in before.counters | now.counters
    }
    peaks = [peak for peak in (before.memory_peak_mb, now.memory_peak_mb) if peak is not None]
    return Measures(_sum(before.cpu_time_ms, now.cpu_time_ms), max(peaks, default=None), counters)


def _sum(before: int | None, now: int | None) -> int | None:
    """Add two numbers; None if one is unknown, since a partial sum would look complete."""
    return None if before is None or now is None else before + now


def timed(attempt: Attempt, call: Callable[[], Any]) -> Any:
    """Call and measure CPU time, in the handler's thread, which nobody else uses meanwhile."""
    before = time.thread_time()
    try:
        return call()
    finally:
        attempt.measures = Measures(cpu_time_ms=round((time.thread_time() - before) * 1000))
