"""`/api/v1/export`: export runs, attempts or events, one JSON object per line."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rota.api.auth.redaction import all_shown, discretion
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of
from rota.api.operations.routing import declared
from rota.api.operations.run_filter import RunQuery, filter_of
from rota.client.client import Client
from rota.client.export import all_events, all_runs, attempts_of
from rota.core.access.roles import Role
from rota.core.runs.run import RunFilter
from rota.verbs.examples import ATTEMPT, EVENT, RUN

_LINES = "application/x-ndjson"


@operation(Role.VIEWER, query=RunQuery, media=_LINES, gives=RUN)
async def export_runs(request: Request) -> Response:
    """Export all matching runs, newest first, one per line."""
    client = await client_of(request)
    run_filter = await _checked_filter(request, client)

    async def each() -> AsyncIterator[bytes]:
        async for page in all_runs(client, run_filter):
            yield b"".join(map(_line, all_shown(request, page)))

    return _stream(each())


@operation(Role.VIEWER, query=RunQuery, media=_LINES, gives={"run_id": RUN["id"], **ATTEMPT})
async def export_attempts(request: Request) -> Response:
    """Export the attempts of all matching runs, one per line with its `run_id`."""
    client = await client_of(request)
    run_filter = await _checked_filter(request, client)

    async def each() -> AsyncIterator[bytes]:
        async for page in all_runs(client, run_filter):
            for run in page:
                discreet = discretion(request, run)
                for one in await attempts_of(client, run):
                    attempt = one if discreet is None else discreet.attempt(one)
                    yield _line({"run_id": run.id, **msgspec.to_builtins(attempt)})

    return _stream(each())


@operation(Role.VIEWER, media=_LINES, gives=EVENT)
async def export_events(request: Request) -> Response:
    """Export the whole audit log, newest first, one event per line."""
    client = await client_of(request)

    async def each() -> AsyncIterator[bytes]:
        async for page in all_events(client):
            yield b"".join(map(_line, page))

    return _stream(each())


async def _checked_filter(request: Request, client: Client) -> RunFilter:
    """Return the filter, tried once: errors in it cannot be reported after the response has begun."""
    run_filter = filter_of(request, checked_query(request, RunQuery))
    await client.page(run_filter, limit=1)
    return run_filter


def _stream(lines: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(lines, media_type=_LINES)


def _line(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"


ROUTES = [
    declared("/export/runs", GET=export_runs),
    declared("/export/attempts", GET=export_attempts),
    declared("/export/events", GET=export_events),
]
