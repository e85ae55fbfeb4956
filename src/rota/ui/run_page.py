"""One run: its facts, its attempts, what went in, what came out and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.addresses import at
from rota.api.disclosure import discretion
from rota.core.model import Attempt, Run
from rota.core.states import RunState
from rota.durations import span
from rota.ui import words
from rota.ui.html import Content, Html, tag
from rota.ui.layout import client_of, command, document, section, with_errors_shown

_COLUMNS = ("attempt", "outcome", "claimed", "took", "worker", "measured", "error")


@with_errors_shown
async def run_page(request: Request) -> Response:
    client = await client_of(request)
    run = await client.get(request.path_params["id"])
    attempts, now = await client.attempts(run.id), await client.time()
    if discreet := discretion(request, run):
        run, attempts = discreet.run(), [discreet.attempt(one) for one in attempts]
    content = [
        tag("p", tag("a", "← all runs", href=at("/"))),
        tag("h1", run.job, " ", words.state(run.state)),
        _facts(run, now),
        _failure(run),
        section("Payload", _json(run.payload)),
        section("Result", _json(run.result)) if run.result is not None else None,
        _attempts(attempts, now) if attempts else None,
        _next_steps(run),
    ]
    return document(request, f"{run.job} · rota", *content, live=not run.state.is_final)


def _facts(run: Run, now: datetime) -> Html:
    facts: list[tuple[str, Content]] = [
        ("run", tag("span", run.id, class_="id")),
        ("queue", run.queue),
        ("priority", run.priority),
        ("attempt", f"{run.attempt} of {run.max_attempts}"),
        ("created", words.moment(run.created_at)),
        ("due", words.moment(run.run_at)),
        ("started", words.moment(run.started_at)),
        ("finished", words.moment(run.finished_at)),
        ("took", words.duration(run, now) if run.started_at and run.state is not RunState.SCHEDULED else None),
        ("reason", run.reason),
        ("key", run.key),
        ("scope", None if run.scope.kind == "global" else f"{run.scope.kind}/{run.scope.id}"),
        ("worker", run.worker_id),
        ("tags", ", ".join(run.tags) or None),
        ("retry of", tag("a", run.retry_of, href=at(f"/runs/{run.retry_of}"), class_="id") if run.retry_of else None),
        ("metadata", _compact(run.metadata) if run.metadata else None),
    ]
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts if value is not None)
    return tag("dl", *pairs)


def _failure(run: Run) -> Html | None:
    if run.error is None:
        return None
    said = tag("p", f"{run.error.type}: {run.error.message}", class_="error")
    trace = tag("pre", run.error.traceback, tabindex=0) if run.error.traceback else None
    return section("Error", said, trace)


def _attempts(attempts: Sequence[Attempt], now: datetime) -> Html:
    """Without the columns that would be empty in every row."""
    rows = [_attempt(attempt, now) for attempt in attempts]
    columns = [column for column in _COLUMNS if any(row[column] for row in rows)]
    head = tag("tr", *(tag("th", column, scope="col", class_=_look(column)) for column in columns))
    body = (tag("tr", *(_cell(column, row[column]) for column in columns)) for row in rows)
    table = tag("table", tag("thead", head), tag("tbody", *body), class_="attempts")
    return section("Attempts", tag("div", table, class_="wide"))


def _attempt(attempt: Attempt, now: datetime) -> dict[str, Content]:
    took = (attempt.ended_at or now) - (attempt.started_at or attempt.claimed_at)
    return {
        "attempt": attempt.no,
        "outcome": words.state(attempt.outcome) if attempt.outcome else "goes on",
        "claimed": words.age(attempt.claimed_at, now),
        "took": span(took),
        "worker": attempt.worker_id,
        "measured": attempt.measured,
        "error": words.first_line(f"{attempt.error.type}: {attempt.error.message}") if attempt.error else None,
    }


def _cell(column: str, content: Content) -> Html:
    """A narrow screen has no row of titles: there, each cell shows its label."""
    if column == "attempt":
        return tag("th", content, scope="row", data_label=column)
    return tag("td", content, class_=_look(column), data_label=None if column in ("outcome", "error") else column)


def _look(column: str) -> str | None:
    return {"claimed": "number", "took": "number", "error": "error"}.get(column)


def _next_steps(run: Run) -> Html:
    verb = "retry" if run.state.is_final else "cancel"
    return section("What to do next", command(f"rota run {verb} {run.id}"))


def _json(value: object) -> Html:
    return tag("pre", tag("code", msgspec.json.format(msgspec.json.encode(value)).decode()), tabindex=0)


def _compact(value: object) -> str:
    return msgspec.json.encode(value).decode()
