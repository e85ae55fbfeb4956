"""Responses with the dashboard's page and assets. The page holds no data, so it needs no authentication."""

from __future__ import annotations

from html import escape

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from rota.api.operations.response import at
from rota.ui.files import Asset, assets, page_source

# `style-src` needs no 'unsafe-inline', because styles are set through the CSSOM. `base-uri` allows the mount path.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'self'"
)
_BASE = '<base href="/" />'
_FOR_EVER = "public, max-age=31536000, immutable"  # names contain a hash of the content
_A_DAY = "public, max-age=86400"

_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>rota</title></head><body>
<h1>The dashboard is not built</h1>
<p>rota runs, and its API answers. The page is made from <code>web/</code> when the package is built.</p>
<p>In a clone: <code>python3 dev.py run</code> builds and serves it; <code>python3 dev.py build</code> builds only.</p>
</body></html>"""


async def page(request: Request) -> Response:
    return _page(200)


async def missing(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer an address where nothing is: with the page, which says so, if a browser asks; else as the API does."""
    request = Request(scope, receive, send)
    if request.method not in ("GET", "HEAD") or "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    await _page(404)(scope, receive, send)


def _page(status: int) -> Response:
    source = page_source()
    if source is None:
        return HTMLResponse(_NOT_BUILT, 503)
    content = source.replace(_BASE, f'<base href="{escape(at("/"))}" />')
    return HTMLResponse(content, status, headers={"content-security-policy": _POLICY})


async def asset(request: Request) -> Response:
    return _file(request, request.path_params["name"], _FOR_EVER)


async def icon(request: Request) -> Response:
    return _file(request, "rota.svg", _A_DAY)


def _file(request: Request, name: str, caching: str) -> Response:
    asset = assets().get(name)
    if asset is None:
        raise HTTPException(404)
    return _sent(asset, caching, zipped="gzip" in request.headers.get("accept-encoding", ""))


def _sent(asset: Asset, caching: str, *, zipped: bool) -> Response:
    headers = {"cache-control": caching, "vary": "accept-encoding"}
    if zipped:
        headers["content-encoding"] = "gzip"
    return Response(asset.zipped if zipped else asset.content, headers=headers, media_type=asset.media_type)
