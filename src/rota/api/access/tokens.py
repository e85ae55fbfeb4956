"""`/api/v1/tokens`: API tokens; `/api/v1/whoami`: the caller's identity."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.operations.operation import operation
from rota.api.operations.response import answer
from rota.api.operations.routing import declared
from rota.api.operations.verb_operation import routes_of
from rota.client.access.tokens import TokensClient
from rota.core.access.roles import Identity, Role
from rota.verbs.examples import IDENTITY


@operation(Role.VIEWER, answers=Identity, gives=IDENTITY)
async def get_identity(request: Request) -> Response:
    """Get the caller's identity: actor, role and scope."""
    return answer(identity_of(request))


ROUTES = [*routes_of(TokensClient, "tokens"), declared("/whoami", GET=get_identity, scoped=True)]
