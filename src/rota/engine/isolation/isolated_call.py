"""Call a handler inside a child process, and carry contexts, results and control-flow exceptions across."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from rota.core.progress.control_flow import Cancelled, Fail, HandedOver, Retry, Snooze, StepTimedOut, mark_final
from rota.core.runs.claim import Claim
from rota.core.runs.run import RunError
from rota.engine.handlers.attempt import RaisedElsewhere, UnreadablePayload
from rota.engine.handlers.context import RunContext, Standing, context_for
from rota.engine.handlers.current_run import current_run, current_worker
from rota.engine.isolation.child_backend import ChildBackend
from rota.engine.isolation.child_lifetime import lifetime
from rota.engine.isolation.child_main import Link
from rota.engine.isolation.protocol import Death, ProcessCall
from rota.engine.isolation.rlimits import told
from rota.engine.observability.log_capture import capture, speaker
from rota.errors import BadPayload
from rota.registry.jobs import Handler
from rota.registry.signature import PayloadType
from rota.values import json
from rota.values.json import Limits

_SIGNALS = (Retry, Fail, Snooze, Cancelled, StepTimedOut, HandedOver)


class CallInfo(msgspec.Struct, frozen=True):
    """Facts from which the child builds the handler's context."""

    claim: Claim
    worker_id: str
    max_result: int
    database_url: str | None = None


def call_of(
    handler: Handler, claim: Claim, worker_id: str, limits: Limits, database_url: str | None = None
) -> ProcessCall:
    fn, cpu_limit = handler.fn, handler.definition.cpu_limit
    return ProcessCall(
        module=fn.__module__,
        qualname=fn.__qualname__,
        main_path=_main_path() if fn.__module__ == "__main__" else None,
        payload=claim.payload.encode(),
        context=msgspec.json.encode(CallInfo(claim, worker_id, limits.max_bytes, database_url)),
        cpu_limit=cpu_limit.total_seconds() if cpu_limit is not None else None,
        memory_limit=handler.definition.memory_limit,
    )


def _main_path() -> str | None:
    import __main__

    file = getattr(__main__, "__file__", None)
    return str(Path(file).resolve()) if file else None


@lru_cache(maxsize=256)
def _payload_type(fn: Callable[..., Any]) -> PayloadType:
    return PayloadType.of(fn, RunContext)


def invoke(target: object, payload: bytes, context: bytes, link: Link) -> bytes:
    """Call the handler, in the child; return its result as JSON."""
    assert callable(target)
    info = msgspec.json.decode(context, type=CallInfo)
    standing = Standing()
    link.on_cancel(lambda: setattr(standing, "cancelled", True))
    link.on_shutdown = lambda: setattr(standing, "shutting_down", True)
    kind = _payload_type(target)
    limits = Limits(info.max_result)
    backend = ChildBackend(link, info.claim, standing, limits, info.database_url, lifetime.states)
    capture.install()
    speaker_token, run_token = speaker.set((backend, None)), current_run.set(info.claim)
    worker_token = current_worker.set(info.worker_id)
    try:
        arguments = _arguments(kind, payload)
        if kind.wants_context:
            is_async = inspect.iscoroutinefunction(target)
            arguments[kind.wants_context] = context_for(is_async)(
                info.claim, info.worker_id, standing, backend, lambda: link.send("renew", b"")
            )
        if kind.injects:
            arguments |= lifetime.states.arguments(kind.injects)
        result = target(**arguments)
        if inspect.iscoroutine(result):
            result = lifetime.run(result)
        return _result(result, limits)
    except _SIGNALS as error:
        error.__rota_signal__ = _signal(error)  # type: ignore[union-attr]
        raise
    finally:
        speaker.reset(speaker_token)
        current_run.reset(run_token)
        current_worker.reset(worker_token)
        capture.remove()
        backend.close()
        if standing.counters:
            link.send("counters", msgspec.json.encode(standing.counters))


def _arguments(kind: PayloadType, payload: bytes) -> dict[str, Any]:
    try:
        return kind.arguments(payload)
    except BadPayload as error:
        raise UnreadablePayload(error) from error


def _result(result: object, limits: Limits) -> bytes:
    try:
        return json.encode(result, limits).encode()
    except BadPayload as error:
        raise Fail(f"the result cannot be stored: {error.problem}") from error


def _signal(error: BaseException) -> dict[str, Any]:
    after = error.timeout if isinstance(error, HandedOver) else getattr(error, "after", None)
    kind = next(kind for kind in _SIGNALS if isinstance(error, kind))
    return {
        "kind": kind.__name__.lower(),
        "after": after / timedelta(microseconds=1) if after is not None else None,
        "step": getattr(error, "step", None),
    }


def raised(value: bytes) -> BaseException:
    """Rebuild, in the parent, the exception that the child described."""
    report = msgspec.json.decode(value)
    error = RunError(
        type=report["type"].rpartition(".")[2],
        message=report["message"],
        traceback=report["traceback"],
        code=report.get("code"),
    )
    signal = report.get("signal") or {}
    after = timedelta(microseconds=signal["after"]) if signal.get("after") is not None else None
    match signal.get("kind"):
        case "retry":
            return Retry(error.message, after=after)
        case "snooze":
            return Snooze(after or timedelta(0), error.message)
        case "handedover":
            return HandedOver(after or timedelta(0), signal.get("step"))
        case "cancelled":
            return Cancelled(error.message)
        case "fail":
            return Fail(error.message)
        case "steptimedout":
            return StepTimedOut(error.message)
        case "final":
            elsewhere = RaisedElsewhere(error)
            mark_final(elsewhere)
            return elsewhere
        case _:
            return RaisedElsewhere(error)


def died(value: bytes) -> RaisedElsewhere:
    return RaisedElsewhere(told(msgspec.json.decode(value, type=Death)))
