"""The REST edge: parse, call the client, answer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Router

from rota.api import (
    applying,
    audit,
    bulk,
    executions,
    expectations,
    export,
    health,
    insight,
    jobs,
    logs,
    notifications,
    openapi,
    queues,
    quotas,
    relations,
    runs,
    schedules,
    session,
    stream,
    tokens,
    worker_claims,
    worker_runs,
    workers,
)
from rota.api.guard import Guard, own_hosts
from rota.api.identity import Doorkeeper
from rota.api.jwt import vouched
from rota.api.problems import http_problem
from rota.api.routing import require_declared
from rota.api.stream import Streams
from rota.app import Rota

_PARTS = (
    *(health, runs, relations, logs, bulk, jobs, executions, schedules, applying, workers, queues, quotas),
    *(insight, expectations, notifications, audit, tokens, session, stream, export, worker_claims, worker_runs),
)


def asgi(app: Rota, pages: Sequence[BaseRoute] = (), *, trusted: bool = False) -> Starlette:
    """The API of `app` and `pages` beside it, behind one guard. It connects when it is first asked something.

    Without `auth`, only callers on this machine are answered, unless all that get here are `trusted`.
    """
    resources = Router([route for part in _PARTS for route in part.ROUTES], redirect_slashes=False)
    routes = [*health.PROBES, *openapi.PAGES, Mount("/api/v1", resources), *pages]
    return _guarded(app, routes, local=not app.config.auth and not trusted)


def probes(app: Rota) -> Starlette:
    """What watches a process that has no API: whether it is alive and ready, and its metrics."""
    return _guarded(app, health.PROBES, local=not app.config.auth)


def _guarded(app: Rota, routes: Sequence[BaseRoute], *, local: bool) -> Starlette:
    require_declared(routes)
    api = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=own_hosts(app.config), local=local)],
        exception_handlers={HTTPException: http_problem},
    )
    api.router.redirect_slashes = False
    api.state.rota = app
    api.state.doorkeeper = Doorkeeper(time.monotonic, vouched(app.config))
    api.state.streams = Streams()
    return api
