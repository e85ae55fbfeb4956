"""Observers of attempts: a log line, a trace span. They cost nothing unless configured."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec

from rota.config import Config
from rota.engine.handlers.attempt import Attempt
from rota.engine.handlers.current_run import RunFields
from rota.errors import RotaError
from rota.observability import tracing
from rota.store import Store
from rota.store.databases.batcher import Batcher

log = logging.getLogger("rota.run")

Call = Callable[[Attempt], Awaitable[object]]


def watched(call: Call, store: Store, config: Config) -> Call:
    """Return `call`, wrapped in the observers that the configuration enables."""
    if config.log_runs:
        call = _logged(call, store.clock.monotonic)
    if config.tracing and tracing.turn_on():
        call = _traced(call, Batcher(store.metadata_of))
    return call


def _logged(call: Call, monotonic: Callable[[], float]) -> Call:
    async def logged(attempt: Attempt) -> object:
        claim, begins = attempt.claim, monotonic()
        if not log.isEnabledFor(logging.INFO):
            return await call(attempt)
        fields = RunFields(claim)
        log.info("run %s of %s begins, attempt %d", claim.run_id, claim.job, claim.attempt, extra=fields)
        how = "raised"
        try:
            result = await call(attempt)
            how = "is done"
        finally:  # the worker logs the outcome
            seconds = monotonic() - begins
            more = {**fields, "duration_ms": round(seconds * 1_000, 3)}
            log.info("run %s of %s %s after %.3fs", claim.run_id, claim.job, how, seconds, extra=more)
        return result

    return logged


def _traced(call: Call, metadata: Batcher[str, str | None]) -> Call:
    async def traced(attempt: Attempt) -> object:
        claim = attempt.claim
        attributes = {**RunFields(claim), "queue": claim.queue}
        with tracing.attempt_span(claim.job, await _traceparent(claim.run_id, metadata), attributes):
            return await call(attempt)

    return traced


async def _traceparent(run_id: str, metadata: Batcher[str, str | None]) -> str | None:
    """Return the trace context that the enqueuing code stored, if any. Its absence never fails an attempt."""
    try:
        text = await metadata.add(run_id)
    except RotaError:
        return None
    traceparent = msgspec.json.decode(text).get(tracing.TRACEPARENT) if text else None
    return traceparent if isinstance(traceparent, str) else None
