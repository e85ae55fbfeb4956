"""`/api/v1/tokens`: who may use the server; and `/api/v1/whoami`."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.answers import answer, page
from rota.api.identity import identity_of
from rota.api.orders import ScopeBody
from rota.api.requests import Query, client_of, json_body, shaped
from rota.api.routing import declared
from rota.core.access import Role, role_of
from rota.core.scope import Scope

_NEVER = "never"


class TokenBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    role: str
    expires: str = "90d"
    scope: ScopeBody | None = None


async def list_tokens(request: Request) -> Response:
    Query(request, ())
    return answer(page(await (await client_of(request)).tokens.list()))


async def create_token(request: Request) -> Response:
    """The only answer that ever tells the token's text."""
    Query(request, ())
    body = shaped(await json_body(request), TokenBody)
    client = await client_of(request)
    issued = await client.tokens.create(
        body.name,
        role_of(body.role),
        expires=None if body.expires == _NEVER else body.expires,
        scope=None if body.scope is None else Scope(body.scope.kind, body.scope.id),
        actor=identity_of(request).actor,
    )
    return answer({**msgspec.to_builtins(issued.token), "secret": issued.secret}, 201)


async def revoke_token(request: Request) -> Response:
    Query(request, ())
    client = await client_of(request)
    return answer(await client.tokens.revoke(request.path_params["id"], actor=identity_of(request).actor))


async def who_am_i(request: Request) -> Response:
    Query(request, ())
    return answer(identity_of(request))


ROUTES = [
    declared("/tokens", GET=(Role.ADMIN, list_tokens), POST=(Role.ADMIN, create_token)),
    declared("/tokens/{id}/revoke", POST=(Role.ADMIN, revoke_token)),
    declared("/whoami", GET=(Role.VIEWER, who_am_i), scoped=True),
]
