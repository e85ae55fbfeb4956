"""Liveness, readiness, metrics, and the database's clock."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.operations.operation import operation
from rota.api.operations.request import client_of
from rota.api.operations.response import answer
from rota.api.operations.routing import declared
from rota.api.operations.verb_operation import routes_of
from rota.client.monitoring.health import HealthVerbs
from rota.core.access.roles import Role
from rota.errors import DeadlineExceeded
from rota.observability.metrics import CONTENT_TYPE

_PATIENCE = 3.0


class Status(msgspec.Struct):
    """Status of the process."""

    status: str


@operation(None, query=None, answers=Status, gives={"status": "ok"})
async def get_health(request: Request) -> Response:
    """Check that the process is alive."""
    return answer({"status": "ok"})


@operation(None, query=None, answers=Status, gives={"status": "ready"})
async def get_readiness(request: Request) -> Response:
    """Check that the database answers and its schema fits this version.

    The check times out before the database's own deadline.
    """
    try:
        async with asyncio.timeout(_PATIENCE):
            client = await client_of(request)
            await client.check_ready()
    except TimeoutError:
        raise DeadlineExceeded("querying the database", _PATIENCE) from None
    return answer({"status": "ready"})


@operation(
    Role.VIEWER,
    query=None,
    media=CONTENT_TYPE,
    gives='rota_runs_total{job="crawl",queue="default",status="succeeded"} 42\n',
)
async def get_metrics(request: Request) -> Response:
    """Get this process's counters and the database's gauges, in Prometheus format."""
    client = await client_of(request)
    return Response(await client.metrics(), headers={"content-type": CONTENT_TYPE})


PROBES = [
    declared("/healthz", GET=get_health),
    declared("/readyz", GET=get_readiness),
    declared("/metrics", GET=get_metrics),
]
ROUTES = routes_of(HealthVerbs)
