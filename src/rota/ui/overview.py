"""The first page: how full the queues are, the newest runs, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from rota.client import Client
from rota.core.model import JobDefinition, Run, RunFilter
from rota.core.states import RunState
from rota.ui import words
from rota.ui.html import Html, tag
from rota.ui.layout import client_of, command, document, section, with_errors_shown

_NEWEST = 50
_MOST_COUNTED = 200
_BUSY = (RunState.RUNNING, RunState.CANCELLING)


@with_errors_shown
async def overview(request: Request) -> Response:
    client = await client_of(request)
    jobs = await client.jobs()
    runs = await client.list(limit=_NEWEST)
    troubles = {run.id: await _trouble(client, run) for run in runs}
    content = [
        tag("h1", "What is going on"),
        await _queues(client, jobs),
        _runs(runs, troubles, await client.time()),
        _next_steps(jobs, str(request.base_url).rstrip("/")),
    ]
    return document(request, "rota", *content, live=True)


async def _queues(client: Client, jobs: Sequence[JobDefinition]) -> Html:
    busy = await client.list(RunFilter(states=_BUSY), limit=_MOST_COUNTED)
    running = Counter(run.queue for run in busy)
    waiting = {queue: (ready, later) for queue, ready, later in await client.queues()}
    more = "+" if len(busy) == _MOST_COUNTED else ""
    rows = []
    for queue in sorted({"default", *running, *waiting, *(job.queue for job in jobs)}):
        ready, later = waiting.get(queue, (0, 0))
        counts = (f"{running[queue]}{more}", f"{ready:,}", f"{later:,}")
        rows.append(tag("tr", tag("th", queue, scope="row"), *(_count(text) for text in counts)))
    head = tag("tr", *(tag("th", text, scope="col") for text in ("queue", "running", "queued", "scheduled")))
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return section("Queues", tag("div", table, class_="wide"), class_="queues")


def _count(text: str) -> Html:
    return tag("td", text, class_="number zero" if text == "0" else "number")


async def _trouble(client: Client, run: Run) -> str | None:
    """What went wrong; for a run that is backing off, in its last attempt."""
    error = run.error
    if run.state is RunState.SCHEDULED and run.attempt:
        attempts = await client.attempts(run.id)
        error = attempts[-1].error if attempts else None
    return words.first_line(f"{error.type}: {error.message}") if error else run.reason


def _runs(runs: Sequence[Run], troubles: Mapping[str, str | None], now: datetime) -> Html:
    if not runs:
        return section(
            "Newest runs", tag("p", "Nothing has run yet. Enqueue something with one of the commands below.")
        )
    columns = ("state", "job", "run", "created", "took", "attempt", "error")
    head = tag("tr", *(tag("th", column, scope="col", class_=_align(column)) for column in columns))
    table = tag(
        "table", tag("thead", head), tag("tbody", *(_row(run, troubles[run.id], now) for run in runs)), class_="runs"
    )
    return section("Newest runs", tag("div", table, class_="wide"))


def _align(column: str) -> str | None:
    return "number" if column in ("created", "took", "attempt") else None


def _row(run: Run, trouble: str | None, now: datetime) -> Html:
    return tag(
        "tr",
        tag("td", words.state(run.state)),
        tag("th", run.job, scope="row"),
        tag("td", words.link(run)),
        tag("td", words.age(run.created_at, now), class_="number"),
        tag("td", words.duration(run, now), class_="number"),
        tag("td", f"{run.attempt}/{run.max_attempts}", class_="number"),
        tag("td", trouble, class_="error"),
    )


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
