"""`/api/v1/session`: sign a browser in and out. It gets a cookie that scripts cannot read."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import ANYBODY, COOKIE, Authenticator, caller_of, session_of
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, own_path
from rota.api.operations.routing import declared
from rota.core.access.roles import Identity
from rota.errors import NotSignedIn
from rota.verbs.examples import IDENTITY


class SessionBody(msgspec.Struct, forbid_unknown_fields=True):
    """The token to sign in with."""

    token: str


@operation(None, body=SessionBody, answers=Identity, status=201, takes={"token": "rota_5be1c0ffee00_…"}, gives=IDENTITY)
async def create_session(request: Request) -> Response:
    """Sign a browser in with a token and set a session cookie that scripts cannot read."""
    body = shaped(await json_body(request), SessionBody)
    identity, cookie = await sign_in(request, body.token)
    return with_cookie(request, answer(identity, 201), cookie)


@operation(None, status=204)
async def delete_session(request: Request) -> Response:
    """Sign a browser out."""
    return await sign_out(request, Response(status_code=204))


async def sign_in(request: Request, text: str) -> tuple[Identity, str | None]:
    """Return the identity of a token and the cookie of a new session, or None for the cookie if `auth` is off."""
    if not request.app.state.rota.config.auth:
        return ANYBODY, None
    authenticator: Authenticator = request.app.state.authenticator
    client = await client_of(request)
    identity = await authenticator.identify(("bearer", text), caller_of(request), client)
    token = await client.tokens.check(text)
    if identity is None or token is None:
        raise NotSignedIn("a session needs one of rota's own tokens; send other tokens with each request")
    return identity, await client.tokens.open_session(token)


def with_cookie(request: Request, response: Response, session: str | None) -> Response:
    if session is not None:
        response.set_cookie(
            COOKIE,
            session,
            max_age=12 * 3_600,
            path=own_path(),
            httponly=True,
            samesite="strict",
            secure=_is_secure(request),
        )
    return response


def _is_secure(request: Request) -> bool:
    """Return whether the browser used HTTPS; a proxy may have terminated TLS."""
    return bool(request.scope.get("scheme") == "https")


async def sign_out(request: Request, response: Response) -> Response:
    text = session_of(request)
    if text:
        request.app.state.authenticator.forget(text)
        await (await client_of(request)).tokens.close_session(text)
    response.delete_cookie(COOKIE, path=own_path(), httponly=True, samesite="strict", secure=_is_secure(request))
    return response


ROUTES = [declared("/session", POST=create_session, DELETE=delete_session)]
