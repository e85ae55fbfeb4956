"""Is it alive, is it ready, what has it counted, and what time is it in the database."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from rota.api.answers import answer
from rota.api.requests import client_of
from rota.api.routing import declared
from rota.core.access import Role
from rota.errors import DeadlineExceeded
from rota.metrics import CONTENT_TYPE

_PATIENCE = 3.0


async def healthz(request: Request) -> Response:
    return answer({"status": "ok"})


async def readyz(request: Request) -> Response:
    """A probe gives up before the database's own deadline would."""
    try:
        async with asyncio.timeout(_PATIENCE):
            client = await client_of(request)
            await client.check_ready()
    except TimeoutError:
        raise DeadlineExceeded("asking the database", _PATIENCE) from None
    return answer({"status": "ready"})


async def metrics(request: Request) -> Response:
    client = await client_of(request)
    return Response(await client.metrics(), headers={"content-type": CONTENT_TYPE})


async def time(request: Request) -> Response:
    client = await client_of(request)
    return answer({"now": await client.time()})


PROBES = [
    declared("/healthz", GET=(None, healthz)),
    declared("/readyz", GET=(None, readyz)),
    declared("/metrics", GET=(Role.VIEWER, metrics)),
]
ROUTES = [declared("/time", GET=(None, time))]
