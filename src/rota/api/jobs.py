"""`/api/v1/jobs`: what can be run."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rota.api.answers import answer, page, worded
from rota.api.requests import Query, client_of
from rota.api.routing import declared
from rota.core.access import Role


async def list_jobs(request: Request) -> Response:
    Query(request, ())
    client = await client_of(request)
    return answer(page([worded(definition) for definition in await client.jobs()]))


ROUTES = [declared("/jobs", GET=(Role.VIEWER, list_jobs))]
