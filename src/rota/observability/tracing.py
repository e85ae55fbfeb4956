"""OpenTelemetry traces, if it is installed and tracing is on.

There is a span for each enqueue, a child of it for each attempt, and one for each step. The enqueue's W3C
`traceparent`, stored in the run's metadata, connects the processes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from rota.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

TRACEPARENT = "traceparent"
_NOTHING: AbstractContextManager[None] = nullcontext()
_tracer: Tracer | None = None

log = logging.getLogger("rota.tracing")


def turn_on() -> bool:
    """Set up the tracer; return whether OpenTelemetry is installed."""
    global _tracer  # noqa: PLW0603  # spans of steps must cost nothing where there is none
    if _tracer is None:
        try:
            from opentelemetry import trace
        except ImportError:
            log.warning("tracing is on, but opentelemetry is not installed: pip install 'rota[tracing]'")
            return False
        _tracer = trace.get_tracer("rota", __version__)
    return True


@contextmanager
def enqueue_span(job: str) -> Iterator[None]:
    """Open a span around an enqueue. Tracing must be on."""
    from opentelemetry.trace import SpanKind

    assert _tracer is not None
    facts = {**_attributes({"job": job}), "messaging.operation.name": "enqueue", "messaging.operation.type": "send"}
    with _tracer.start_as_current_span(f"enqueue {job}", kind=SpanKind.PRODUCER, attributes=facts):
        yield


def trace_fields() -> dict[str, object]:
    """Return the ids of the current span, for log lines; empty without one."""
    if _tracer is None:
        return {}
    from opentelemetry.trace import format_span_id, format_trace_id, get_current_span

    context = get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": format_trace_id(context.trace_id), "span_id": format_span_id(context.span_id)}


@contextmanager
def attempt_span(job: str, traceparent: str | None, attributes: Mapping[str, object]) -> Iterator[None]:
    """Open a span around an attempt, as a child of its enqueue. Tracing must be on."""
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    assert _tracer is not None
    parent = TraceContextTextMapPropagator().extract({TRACEPARENT: traceparent}) if traceparent else None
    facts = {**_attributes(attributes), "messaging.operation.name": "run", "messaging.operation.type": "process"}
    for name, fact in (("messaging.message.id", "run_id"), ("messaging.destination.name", "queue")):
        facts[name] = str(attributes[fact])
    with _tracer.start_as_current_span(f"run {job}", context=parent, kind=SpanKind.CONSUMER, attributes=facts):
        yield


def step_span(name: str) -> AbstractContextManager[Span | None]:
    """Return a span around a step of a traced attempt; otherwise a context manager that does nothing."""
    if _tracer is None:
        return _NOTHING
    from opentelemetry.trace import get_current_span

    if not get_current_span().get_span_context().is_valid:
        return _NOTHING
    return _tracer.start_as_current_span(f"step {name}", attributes={"rota.step": name})


def traceparent() -> str | None:
    """Return the W3C trace context of the current span, to store with the runs it enqueues."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(TRACEPARENT)


def _attributes(facts: Mapping[str, object]) -> dict[str, str | int]:
    named = {f"rota.{name}": value for name, value in facts.items()}
    return {"messaging.system": "rota", **{name: v for name, v in named.items() if isinstance(v, str | int)}}
