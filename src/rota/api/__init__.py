"""The REST edge: parse, call the client, answer."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Router

from rota.api import health, jobs, runs
from rota.api.guard import Guard
from rota.api.problems import http_problem
from rota.app import Rota


def asgi(app: Rota, pages: Sequence[BaseRoute] = ()) -> Starlette:
    """The API of `app` and `pages` beside it, behind one guard. It connects when it is first asked something."""
    resources = Router([*health.ROUTES, *runs.ROUTES, *jobs.ROUTES], redirect_slashes=False)
    return _guarded(app, [*health.PROBES, Mount("/api/v1", resources), *pages])


def probes(app: Rota) -> Starlette:
    """What watches a process that has no API: whether it is alive and ready, and its metrics."""
    return _guarded(app, health.PROBES)


def _guarded(app: Rota, routes: Sequence[BaseRoute]) -> Starlette:
    api = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, host=app.config.host)],
        exception_handlers={HTTPException: http_problem},
    )
    api.router.redirect_slashes = False
    api.state.rota = app
    return api
