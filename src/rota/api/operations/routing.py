"""Routes that declare who may use them. Undeclared routes cannot be served."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, Router, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.api.auth.identity import identify
from rota.api.operations.operation import Operation
from rota.api.operations.query import check_query
from rota.core.access.roles import Role
from rota.errors import Forbidden
from rota.values.scope import scope_text

_SLASH = "\ufdd0"  # stands for a slash within a name; a noncharacter, which no name contains
_WRITTEN_SLASH = re.compile("%2f", re.IGNORECASE)


class Declared(Route):
    """Route with one operation per method. `scoped`: callers limited to a scope may use it; other routes refuse them.

    `page`: for people, and left out of the API's description.
    """

    def __init__(
        self, path: str, operations: Mapping[str, Operation], *, scoped: bool = False, page: bool = False
    ) -> None:
        self.operations = dict(operations)
        self.scoped = scoped
        self.page = page
        super().__init__(path, self._answer, methods=list(operations))
        self.app = self._serve  # skips Starlette's exception wrapper: the guard handles exceptions

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        await (await self._answer(request))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.path_params:
            request.scope["path_params"] = {name: _slashed(part) for name, part in request.path_params.items()}
        operation = self.operations["GET" if request.method == "HEAD" else request.method]
        if operation.role is not None:
            await self._require(request, operation.role)
        if operation.query is not None:
            check_query(request, operation.query)
        return await operation.endpoint(request)

    async def _require(self, request: Request, role: Role) -> None:
        identity = await identify(request)
        identity.require(role)
        if identity.scope is not None and not self.scoped:
            scope = scope_text(identity.scope)
            raise Forbidden(f"{identity.actor} may only access runs of {scope}, not this")


class FastRouter(Router):
    """Router that looks up paths without parameters, and the beginnings of the others, in dictionaries.

    Only routes with the same beginning are then matched one by one. `missing` answers where no route is.
    """

    def __init__(self, routes: Iterable[BaseRoute], missing: ASGIApp | None = None) -> None:
        route_list = list(routes)
        super().__init__(route_list, redirect_slashes=False, default=missing)
        self._exact: dict[str, list[Declared]] = {}
        self._open: dict[str, list[tuple[re.Pattern[str], Declared]]] = {}
        for path, route in walk(route_list):
            if "{" not in path:
                self._exact.setdefault(path, []).append(route)
            elif "{" not in (beginning := _beginning(path)):
                self._open.setdefault(beginning, []).append((compile_path(path)[0], route))

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._find(scope) if scope["type"] == "http" else None
        if found is None:
            await super().app(scope, receive, send)
            return
        route, scope["path_params"] = found
        await route.handle(scope, receive, send)

    def _find(self, scope: Scope) -> tuple[Declared, dict[str, str]] | None:
        """Return the route of a path and its parameters: one that has the method, or else any, which refuses it."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        routes = self._exact.get(path)
        if routes is not None:
            return next((route for route in routes if method in route.operations), routes[0]), {}
        other: tuple[Declared, dict[str, str]] | None = None
        for pattern, route in self._open.get(_beginning(path), ()):
            match = pattern.match(path)
            if match is not None:
                if method in route.operations:
                    return route, match.groupdict()
                other = other or (route, match.groupdict())
        return other


def _beginning(path: str) -> str:
    """Return the first three segments of a path: `/api/v1/runs`."""
    return "/".join(path.split("/", 4)[:4])


def with_slashes_kept(scope: Scope) -> Scope:
    """Protect slashes in names, written `%2F`: servers decode them, and they would split the path."""
    raw = scope.get("raw_path") or b""
    if b"%2" not in raw:
        return scope
    written = raw.decode("ascii", errors="replace")
    if unquote(written) != scope["path"]:  # a middleware or proxy has rewritten the path
        return scope
    return {**scope, "path": unquote(_WRITTEN_SLASH.sub(quote(_SLASH), written))}


def _slashed(part: object) -> object:
    return part.replace(_SLASH, "/") if isinstance(part, str) else part


def declared(path: str, *, scoped: bool = False, page: bool = False, **operations: Operation) -> Declared:
    """Declare a route: `declared("/runs", GET=list_runs, POST=enqueue_run)`."""
    return Declared(path, operations, scoped=scoped, page=page)


def joined(routes: Iterable[Declared]) -> list[Declared]:
    """Join routes of the same path, each with some of its methods, to one."""
    operations: dict[tuple[str, bool], dict[str, Operation]] = {}
    for route in routes:
        operations.setdefault((route.path, route.scoped), {}).update(route.operations)
    return [Declared(path, methods, scoped=scoped) for (path, scoped), methods in operations.items()]


def require_declared(routes: Iterable[BaseRoute]) -> None:
    """Raise if a route does not declare who may use it, so that the application does not start."""
    for _ in walk(routes):
        pass


def walk(routes: Iterable[BaseRoute], below: str = "") -> Iterator[tuple[str, Declared]]:
    """Yield every route with its whole path."""
    for route in routes:
        if isinstance(route, Mount):
            yield from walk(route.routes, below + route.path)
        elif isinstance(route, Declared):
            yield below + route.path, route
        else:
            raise TypeError(f"{route!r} does not declare who may use it")
