"""`/api/v1/tokens`: manage API tokens; `/api/v1/whoami`: the caller's identity."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.docs.examples import IDENTITY, TOKEN
from rota.api.operations.enqueue_body import ScopeBody
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.core.access.roles import Identity, Role, Token, role_of
from rota.values.scope import Scope

_NEVER = "never"


class TokenBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`expires` is a duration, or `never`. A token with a `scope` only gives access to runs of that scope."""

    name: str
    role: str
    expires: str = "90d"
    scope: ScopeBody | None = None


class IssuedToken(Token, frozen=True, kw_only=True):
    """A new token with its `secret`."""

    secret: str


@operation(Role.ADMIN, answers=Token, lists=True, gives=TOKEN)
async def list_tokens(request: Request) -> Response:
    """List all tokens, oldest first, including revoked and expired ones; without their secrets."""
    return answer(page(await (await client_of(request)).tokens.list()))


@operation(
    Role.ADMIN,
    body=TokenBody,
    answers=IssuedToken,
    status=201,
    takes={"name": "ci", "role": "enqueue", "expires": "30d"},
    gives={**TOKEN, "secret": "rota_5be1c0ffee00_…"},
)
async def create_token(request: Request) -> Response:
    """Create a token.

    The response contains its `secret`, which cannot be read again.
    """
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


@operation(Role.ADMIN, answers=Token, gives=TOKEN)
async def revoke_token(request: Request) -> Response:
    """Revoke a token, by id or name, and end its sessions."""
    client = await client_of(request)
    return answer(await client.tokens.revoke(request.path_params["id"], actor=identity_of(request).actor))


@operation(Role.VIEWER, answers=Identity, gives=IDENTITY)
async def get_identity(request: Request) -> Response:
    """Get the caller's identity: actor, role and scope."""
    return answer(identity_of(request))


ROUTES = [
    declared("/tokens", GET=list_tokens, POST=create_token),
    declared("/tokens/{id}/revoke", POST=revoke_token),
    declared("/whoami", GET=get_identity, scoped=True),
]
