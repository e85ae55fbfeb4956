"""Routes that say who may use them. One that does not say it cannot be served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from rota.api.identity import identify
from rota.core.access import Role
from rota.errors import Forbidden, NotSignedIn

Endpoint = Callable[[Request], Awaitable[Response]]
Permit = tuple[Role | None, Endpoint]
"""Who may use it, None: everybody; and what it does."""


class Declared(Route):
    """`permits` has the role for each method. `scoped`: it heeds the scope of whoever asks; others refuse them.

    `page`: for people, who are sent to sign in.
    """

    def __init__(self, path: str, permits: dict[str, Permit], *, scoped: bool = False, page: bool = False) -> None:
        self.permits = permits
        self.scoped = scoped
        self.page = page
        super().__init__(path, self._answer, methods=list(permits))

    async def _answer(self, request: Request) -> Response:
        role, endpoint = self.permits["GET" if request.method == "HEAD" else request.method]
        if role is not None:
            try:
                await self._require(request, role)
            except NotSignedIn:
                if not self.page:
                    raise
                return RedirectResponse(f"/sign-in?{urlencode({'next': request.url.path})}", 303)
        return await endpoint(request)

    async def _require(self, request: Request, role: Role) -> None:
        identity = await identify(request)
        identity.require(role)
        if identity.scope is not None and not self.scoped:
            of = f"{identity.scope.kind}/{identity.scope.id}"
            raise Forbidden(f"{identity.actor} is for the runs of {of} only, which this is not about")


def declared(path: str, *, scoped: bool = False, page: bool = False, **permits: Permit) -> Declared:
    """`declared("/runs", GET=(Role.VIEWER, list_runs), POST=(Role.ENQUEUE, enqueue))`."""
    return Declared(path, permits, scoped=scoped, page=page)


def require_declared(routes: Iterable[BaseRoute]) -> None:
    """What nobody thought about is denied: it does not even start."""
    for route in routes:
        if isinstance(route, Mount):
            require_declared(route.routes)
        elif not isinstance(route, Declared):
            raise TypeError(f"{route!r} does not say who may use it")
