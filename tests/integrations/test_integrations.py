"""Test what Sentry, structlog and traces learn of a run."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
import structlog
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rota import Fail, Retry, Rota
from rota.engine.observability.logs import JsonLines
from rota.errors import Invalid
from rota.integrations import heartbeats, sentry
from rota.integrations import structlog as structlog_context
from rota.testing import drain, inline
from tests.support.servers.http_server import serving
from tests.support.wait import wait_for

EVENTS: list[dict[str, Any]] = []


class Kept(Transport):
    def capture_envelope(self, envelope: Envelope) -> None:
        EVENTS.extend(dict(event) for item in envelope.items if (event := item.get_event()) is not None)


@pytest.fixture
def sent() -> Iterator[list[dict[str, Any]]]:
    EVENTS.clear()
    sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", transport=Kept, default_integrations=False)
    yield EVENTS
    sentry_sdk.init()  # nowhere


@pytest.mark.parametrize("is_async", [False, True], ids=["function", "coroutine"])
def test_sentry_hears_of_errors_with_their_run(sqlite_url: str, sent: list[dict[str, Any]], is_async: bool) -> None:
    app = Rota(sqlite_url)
    sentry.install(app)

    def fails(error: str) -> None:
        raise {"ValueError": ValueError, "Retry": Retry, "Fail": Fail}[error](error)

    async def fails_later(error: str) -> None:
        fails(error)

    job = app.job(name="fails", max_attempts=2, backoff="0s")(fails_later if is_async else fails)
    handle = job.enqueue(error="ValueError")
    drain(app)
    assert [event["exception"]["values"][-1]["type"] for event in sent] == ["ValueError"] * 2
    assert [event["tags"] for event in sent] == [{"rota.job": "fails", "rota.run": handle.id}] * 2
    assert [event["contexts"]["rota"]["attempt"] for event in sent] == [1, 2]
    sent.clear()
    with inline(app):
        job.enqueue(error="Retry")
        job.enqueue(error="Fail")
    assert [event["exception"]["values"][-1]["type"] for event in sent] == ["Fail"]
    app.close()


def test_sentry_may_hear_of_the_last_attempt_only(sqlite_url: str, sent: list[dict[str, Any]]) -> None:
    app = Rota(sqlite_url)
    sentry.install(app, only_last=True)

    @app.job(max_attempts=3, backoff="0s")
    def fails() -> None:
        raise ValueError

    fails.enqueue()
    drain(app)
    assert [event["contexts"]["rota"]["attempt"] for event in sent] == [3]
    app.close()


def test_structlog_names_the_run() -> None:
    app = Rota("sqlite:///never-opened.db")
    structlog_context.install(app)
    seen: list[dict[str, Any]] = []

    @app.job
    def in_thread() -> None:
        seen.append(structlog.contextvars.get_contextvars())

    @app.job
    async def on_loop() -> None:
        seen.append(structlog.contextvars.get_contextvars())

    with inline(app) as inlined:
        in_thread.enqueue()
        on_loop.enqueue()
    assert seen == [{"run_id": run.id, "job": run.job, "attempt": 1} for run in inlined.runs]
    assert structlog.contextvars.get_contextvars() == {}


def test_log_lines_name_the_trace() -> None:
    from opentelemetry.sdk.trace import TracerProvider

    from rota.observability import tracing

    record = logging.LogRecord("shop", logging.INFO, __file__, 1, "sold", (), None)
    assert tracing.turn_on()
    assert "trace_id" not in json.loads(JsonLines().format(record))
    with TracerProvider().get_tracer("test").start_as_current_span("a") as span:
        line = json.loads(JsonLines().format(record))
    assert line["trace_id"] == f"{span.get_span_context().trace_id:032x}"
    assert line["span_id"] == f"{span.get_span_context().span_id:016x}"


def test_nobody_imports_them_unasked() -> None:
    names = ["sentry_sdk", "structlog", "opentelemetry", "django", "sqlalchemy", "rota.integrations"]
    code = f"import rota, rota.app, sys; rota.Rota(); print([n for n in {names} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("is_async", [False, True], ids=["function", "coroutine"])
def test_a_dead_mans_switch_hears_of_begins_and_ends(sqlite_url: str, is_async: bool) -> None:
    pings: list[str] = []

    async def take(request: Request) -> Response:
        pings.append(request.url.path)
        return Response()

    def plain() -> None: ...

    async def coroutine() -> None: ...

    app = Rota(sqlite_url)
    job = app.job(name="crawl")(coroutine if is_async else plain)
    other = app.job(name="other")(coroutine if is_async else plain)
    with serving(Starlette(routes=[Route("/{rest:path}", take, methods=["POST"])])) as site:
        heartbeats.install(app, "crawl", to=f"healthchecks:{site.url}/uuid")
        job.enqueue()
        other.enqueue()
        drain(app)
        wait_for(lambda: pings == ["/uuid/start"])
    (declared,) = dict(app.registry.notifications).items()
    assert declared[0] == "heartbeat:crawl"
    assert (declared[1].on, declared[1].jobs) == (("success", "failure"), ("crawl",))
    with pytest.raises(Invalid, match="healthchecks"):
        heartbeats.install(app, "other", to="https://example.com")
    app.close()
