"""Test traces: an attempt is a child of its enqueue, and tracing costs nothing when off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rota import Context, Order, RunState, SyncContext
from rota.errors import Unavailable
from rota.observability import tracing
from rota.testing import Harness
from tests.support.runs.real_worker import Working

Start = Callable[..., Awaitable[Working]]


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    monkeypatch.setattr(tracing, "_tracer", None)
    exporter.clear()
    yield exporter
    exporter.clear()


@pytest.fixture
async def traced(sqlite_url: str, spans: InMemorySpanExporter) -> AsyncIterator[Harness]:
    async with Harness(url=sqlite_url, tracing=True) as harness:
        yield harness


def named(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [span for span in spans.get_finished_spans() if span.name == name]
    return found


async def test_an_attempt_is_a_child_of_the_enqueue(
    traced: Harness, working: Start, spans: InMemorySpanExporter
) -> None:
    @traced.app.job
    async def work(ctx: Context) -> None:
        await ctx.step("fetch", asyncio.sleep, 0)

    run = await traced.enqueue(work, {"metadata": {"mine": 1}})
    await (await working(traced)).has_state(run, RunState.SUCCEEDED)
    enqueue, attempt, step = (named(spans, name) for name in ("enqueue work", "run work", "step fetch"))
    assert (enqueue.kind, attempt.kind) == (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER)
    assert enqueue.context is not None
    assert attempt.context is not None
    assert attempt.parent is not None
    assert attempt.parent.span_id == enqueue.context.span_id
    assert step.parent is not None
    assert step.parent.span_id == attempt.context.span_id
    assert {span.context.trace_id for span in (enqueue, attempt, step) if span.context} == {enqueue.context.trace_id}
    assert attempt.attributes is not None
    assert attempt.attributes["rota.run_id"] == run.id
    assert attempt.attributes["rota.attempt"] == 1
    metadata = (await traced.run(run)).metadata
    assert metadata["mine"] == 1
    assert metadata["traceparent"].split("-")[2] == f"{enqueue.context.span_id:016x}"


async def test_every_attempt_has_its_span_and_a_failure_shows(
    traced: Harness, working: Start, spans: InMemorySpanExporter
) -> None:
    @traced.app.job(max_attempts=2, backoff=["0s"])
    def work() -> None:
        raise LookupError("nothing there")

    run = await traced.enqueue(work)
    await (await working(traced)).has_state(run, RunState.FAILED)
    attempts = [span for span in spans.get_finished_spans() if span.name == "run work"]
    assert [span.attributes and span.attributes["rota.attempt"] for span in attempts] == [1, 2]
    assert {span.status.status_code for span in attempts} == {trace.StatusCode.ERROR}
    assert len({span.parent and span.parent.span_id for span in attempts}) == 1
    error = (await traced.run(run)).error
    assert error is not None
    assert "watching.py" not in (error.traceback or "")  # our own frames are nobody else's business


async def test_each_that_is_enqueued_alone_keeps_its_own(database_url: str, spans: InMemorySpanExporter) -> None:
    """Runs of a job are made one after the other's likeness, which does not reach as far as that."""
    async with Harness(url=database_url, tracing=True) as harness:
        harness.app.job(name="work")(lambda: None)
        orders = [Order("work", {}) for _ in range(8)]
        shown = await asyncio.gather(*[harness.client.enqueue_shown([order]) for order in orders])
        stored = [await harness.run(run.id) for ((run, _),) in shown]
    assert stored == [run for ((run, _),) in shown]
    assert len({run.metadata["traceparent"] for run in stored}) == 8


async def test_many_at_once_belong_to_one_span(traced: Harness, spans: InMemorySpanExporter) -> None:
    await traced.declare("work")
    await traced.client.enqueue_many([Order("work", {"n": n}) for n in range(3)])
    assert len(spans.get_finished_spans()) == 1
    runs = await traced.client.list()
    assert len({run.metadata["traceparent"] for run in runs}) == 1


async def test_a_trace_that_the_caller_names_stays(traced: Harness, spans: InMemorySpanExporter) -> None:
    own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    run = await traced.enqueue("work", {"metadata": {"traceparent": own}})
    assert (await traced.run(run)).metadata == {"traceparent": own}


@pytest.mark.parametrize("text", ["nonsense", 7, None])
async def test_what_is_no_trace_begins_a_new_one(
    traced: Harness, working: Start, spans: InMemorySpanExporter, text: object
) -> None:
    run = await traced.enqueue("work", {"metadata": {"traceparent": text}})
    await (await working(traced)).has_state(run, RunState.SUCCEEDED)
    assert named(spans, "run work").parent is None


async def test_an_attempt_does_not_fail_for_want_of_its_trace(
    traced: Harness, working: Start, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: object) -> list[str | None]:
        raise Unavailable("away")

    monkeypatch.setattr(traced.store, "metadata_of", away)
    run = await traced.enqueue("work")
    await (await working(traced)).has_state(run, RunState.SUCCEEDED)
    assert named(spans, "run work").parent is None


async def test_enqueued_in_a_transaction_of_ones_own(traced: Harness, spans: InMemorySpanExporter) -> None:
    await traced.declare("work")
    with trace.get_tracer("shop").start_as_current_span("checkout") as checkout:
        run = traced.app.prepare_locally(Order("work", {}))
    kept = msgspec.json.decode(run.metadata or "{}")["traceparent"]
    assert kept.split("-")[2] == f"{checkout.get_span_context().span_id:016x}"


async def test_off_is_the_default_and_does_nothing(
    harness: Harness, working: Start, spans: InMemorySpanExporter
) -> None:
    @harness.app.job
    async def work() -> None:
        with tracing.step_span("fetch") as span:
            assert span is None

    run = await harness.enqueue(work)
    real = await working(harness)
    await real.has_state(run, RunState.SUCCEEDED)
    assert real.worker._executor._call == real.worker._executor._calls.call
    assert (await harness.run(run)).metadata == {}
    assert spans.get_finished_spans() == ()


async def test_a_step_outside_of_any_trace_is_none(traced: Harness, spans: InMemorySpanExporter) -> None:
    with tracing.step_span("alone") as span:
        assert span is None


async def test_without_opentelemetry_it_is_said_and_nothing_is_traced(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert not tracing.turn_on()
    assert "rota[tracing]" in caplog.text


async def test_steps_of_plain_functions_are_in_the_trace_of_their_attempt(
    traced: Harness, working: Start, spans: InMemorySpanExporter
) -> None:
    @traced.app.job
    def plain(ctx: SyncContext) -> None:
        ctx.step("fetch", lambda: None)

    run = await traced.enqueue(plain)
    await (await working(traced)).has_state(run, RunState.SUCCEEDED)
    attempt, step = named(spans, "run plain"), named(spans, "step fetch")
    assert attempt.context is not None
    assert step.parent is not None
    assert step.parent.span_id == attempt.context.span_id
