"""The page where people sign in with a token, and out again."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rota.api.addresses import at
from rota.api.session import signed_in, signed_out, with_cookie
from rota.errors import Denied
from rota.ui.html import tag
from rota.ui.layout import document

_MOST = 2_000


async def sign_in_page(request: Request, problem: str | None = None, status: int = 200) -> Response:
    field = tag("input", type="password", name="token", autocomplete="current-password", required="required")
    form = tag(
        "form",
        tag("p", tag("label", "Token ", field)),
        tag("p", tag("button", "Sign in")),
        method="post",
        action=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
    )
    words = [tag("h1", "Sign in"), tag("p", problem, role="alert") if problem else None, form]
    words.append(tag("p", "`rota token create NAME --role operator` makes one.", class_="quiet"))
    return document(request, "rota: sign in", *words, status=status)


async def sign_in(request: Request) -> Response:
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > _MOST:
            break
    given = parse_qs(raw[:_MOST].decode("ascii", errors="replace")).get("token", [""])[0]
    try:
        _, session = await signed_in(request, given.strip())
    except Denied as error:
        return await sign_in_page(request, error.message, error.status)
    return with_cookie(request, RedirectResponse(_next(request), 303), session)


async def sign_out(request: Request) -> Response:
    return await signed_out(request, RedirectResponse(at("/sign-in"), 303))


def _next(request: Request) -> str:
    """A page of ours, whatever the address says."""
    path = request.query_params.get("next", at("/"))
    ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if ours else at("/")
