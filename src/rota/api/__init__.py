"""The REST edge: parse, call the client, answer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Router
from starlette.types import ASGIApp

from rota.api import (
    accounts,
    applying,
    audit,
    bulk,
    executions,
    expectations,
    export,
    faults,
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
from rota.api.fronting import Front
from rota.api.guard import Guard, own_hosts
from rota.api.identity import Doorkeeper
from rota.api.jwt import vouched
from rota.api.routing import Quick, require_declared, walk
from rota.api.stream import Streams
from rota.app import Rota

_PARTS = (
    *(health, runs, relations, logs, bulk, jobs, executions, schedules, accounts, applying, workers, queues, quotas),
    *(insight, expectations, faults, notifications, audit, tokens, session, stream, export, worker_claims, worker_runs),
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


class _Guarded(Starlette):
    """Its guard is all that stands before its routes: what goes wrong behind it is caught there."""

    def __init__(self, hosts: frozenset[str], front: Front, routes: Sequence[BaseRoute], *, local: bool) -> None:
        super().__init__()
        self.router = Quick(routes)
        self._guard = Guard(self.router, hosts, front, local=local)

    def build_middleware_stack(self) -> ASGIApp:
        return self._guard


def _guarded(app: Rota, routes: Sequence[BaseRoute], *, local: bool) -> Starlette:
    require_declared(routes)
    own = {path.split("/")[1] for path, _ in walk(routes)}
    api = _Guarded(own_hosts(app.config), Front(app.config, own), routes, local=local)
    api.state.rota = app
    api.state.doorkeeper = Doorkeeper(time.monotonic, vouched(app.config))
    api.state.streams = Streams()
    return api
