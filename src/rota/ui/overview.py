"""The first page: how full the queues are, the newest runs, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from rota.api.disclosure import all_shown
from rota.core.model import JobDefinition, QueueCount, Run, with_empty_queues
from rota.ui import words
from rota.ui.html import Html, tag
from rota.ui.layout import client_of, command, document, section, with_errors_shown

_NEWEST = 50


@with_errors_shown
async def overview(request: Request) -> Response:
    client = await client_of(request)
    jobs = await client.jobs()
    content = [
        tag("h1", "What is going on"),
        _queues(with_empty_queues(await client.queues(), jobs)),
        _runs(all_shown(request, await client.list(limit=_NEWEST)), await client.time()),
        _next_steps(jobs, str(request.base_url).rstrip("/")),
    ]
    return document(request, "rota", *content, live=True)


def _queues(counts: Sequence[QueueCount]) -> Html:
    rows = [tag("tr", tag("th", queue, scope="row"), *map(_count, numbers)) for queue, *numbers in counts]
    head = tag("tr", *(tag("th", text, scope="col") for text in ("queue", "running", "queued", "scheduled")))
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return section("Queues", tag("div", table, class_="wide"), class_="queues")


def _count(number: int) -> Html:
    return tag("td", f"{number:,}", class_="number" if number else "number zero")


def _runs(runs: Sequence[Run], now: datetime) -> Html:
    if not runs:
        return section(
            "Newest runs", tag("p", "Nothing has run yet. Enqueue something with one of the commands below.")
        )
    columns = ["state", "job", "run", "created", "took", "attempt"]
    troubled = any(_trouble(run) for run in runs)
    if troubled:
        columns.append("error")
    head = tag("tr", *(tag("th", column, scope="col", class_=_align(column)) for column in columns))
    rows = (_row(run, now, troubled=troubled) for run in runs)
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="runs")
    return section("Newest runs", tag("div", table, class_="wide"))


def _align(column: str) -> str | None:
    return "number" if column in ("created", "took", "attempt") else None


def _row(run: Run, now: datetime, *, troubled: bool) -> Html:
    return tag(
        "tr",
        tag("td", words.state(run.state)),
        tag("th", run.job, scope="row"),
        tag("td", words.link(run)),
        tag("td", words.age(run.created_at, now), class_="number"),
        tag("td", words.duration(run, now), class_="number"),
        tag("td", f"{run.attempt}/{run.max_attempts}", class_="number", data_label="attempt"),
        tag("td", _trouble(run), class_="error") if troubled else None,
    )


def _trouble(run: Run) -> str | None:
    """What went wrong; for a run that is not final, in its last attempt."""
    return words.first_line(f"{run.error.type}: {run.error.message}") if run.error else run.reason


def _next_steps(jobs: Sequence[JobDefinition], address: str) -> Html:
    names = [job.name for job in jobs]
    if not names:
        return section(
            "What to do next",
            tag("p", "No job is declared yet. Put @app.job on a function and start a worker that has it:"),
            command("rota worker my_module:app"),
        )
    job, payload = ("hello", '{"name": "you"}') if "hello" in names else (names[0], "{}")
    body = f'{{"job": "{job}", "payload": {payload}}}'
    return section(
        "What to do next",
        tag("p", "Enqueue a run and look at it:"),
        command(f"rota run add {shlex.quote(job)} {shlex.quote(payload)}"),
        command("rota run ls"),
        tag("p", "The same over HTTP, from any language:"),
        command(f"curl {address}/api/v1/runs -H 'Content-Type: application/json' -d {shlex.quote(body)}"),
        tag("p", "Jobs that can be run here: ", ", ".join(names), class_="quiet"),
    )
