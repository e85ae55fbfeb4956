"""The REST API: parse requests, call the client, build responses."""

from __future__ import annotations

import time
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount, Router
from starlette.types import ASGIApp

from rota.api.access import session, tokens
from rota.api.alerts import expectations, notifications
from rota.api.auth.enqueue_rate import EnqueueRate
from rota.api.auth.identity import ANYBODY, Authenticator
from rota.api.auth.jwt import jwt_verifier
from rota.api.docs import openapi
from rota.api.external import worker_protocol
from rota.api.http.guard import Guard, own_hosts
from rota.api.http.proxies import ProxyHeaders
from rota.api.jobs import executions, jobs
from rota.api.limits import quotas
from rota.api.monitoring import attention, audit, changes, database, error_groups, export, health, monitoring
from rota.api.operations.event_stream import Streams
from rota.api.operations.routing import FastRouter, require_declared, walk
from rota.api.runs import bulk, runs
from rota.api.schedules import schedules
from rota.api.workers import workers
from rota.app import Rota
from rota.core.access.roles import Identity

_PARTS = (
    *(health, runs, bulk, jobs, executions, schedules, workers, quotas),
    *(
        attention,
        monitoring,
        expectations,
        error_groups,
        notifications,
        audit,
        tokens,
        session,
        changes,
        export,
        database,
        worker_protocol,
    ),
)


def asgi(
    app: Rota,
    pages: Sequence[BaseRoute] = (),
    missing: ASGIApp | None = None,
    *,
    trusted: bool = False,
    caller: Identity = ANYBODY,
) -> Starlette:
    """Build the ASGI application with the API of `app` and `pages`, behind one guard. It connects at the first request.

    `missing` answers at addresses outside the API where nothing is. Without `auth`, only callers on this machine are
    answered, unless all requests are `trusted`; each is `caller`.
    """
    resources = Router([route for part in _PARTS for route in part.ROUTES], redirect_slashes=False)
    routes = [*health.PROBES, *openapi.PAGES, Mount("/api/v1", resources), *pages]
    api = _guarded(app, routes, missing, local=not app.config.auth and not trusted)
    api.state.caller = caller
    return api


def probes(app: Rota) -> Starlette:
    """Build an ASGI application with only health probes and metrics, for processes without an API."""
    return _guarded(app, health.PROBES, local=not app.config.auth)


class _Guarded(Starlette):
    """Application whose only middleware is its guard, which also handles exceptions."""

    def __init__(self, hosts: frozenset[str], front: ProxyHeaders, router: FastRouter, *, local: bool) -> None:
        super().__init__()
        self.router = router
        self._guard = Guard(self.router, hosts, front, local=local)

    def build_middleware_stack(self) -> ASGIApp:
        return self._guard


def _guarded(app: Rota, routes: Sequence[BaseRoute], missing: ASGIApp | None = None, *, local: bool) -> Starlette:
    require_declared(routes)
    first_segments = {path.split("/")[1] for path, _ in walk(routes)}
    router = FastRouter(routes, missing)
    api = _Guarded(own_hosts(app.config), ProxyHeaders(app.config, first_segments), router, local=local)
    api.state.rota = app
    api.state.authenticator = Authenticator(time.monotonic, jwt_verifier(app.config))
    api.state.streams = Streams()
    api.state.enqueue_rate = EnqueueRate(app.config.enqueue_rate, time.monotonic)
    return api
