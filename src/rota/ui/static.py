"""The style sheet and the icon, out of the package."""

from __future__ import annotations

import hashlib
from importlib import resources

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rota.api.addresses import at

_TYPES = {"rota.css": "text/css", "rota.svg": "image/svg+xml"}
_FILES = {name: (resources.files("rota.ui") / "static" / name).read_bytes() for name in _TYPES}


def address(name: str) -> str:
    """With a stamp of the content, so that a browser may keep it and still never has an old one."""
    return at(f"/static/{name}?v={hashlib.sha256(_FILES[name]).hexdigest()[:12]}")


async def static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _FILES:
        raise HTTPException(404)
    return Response(_FILES[name], headers={"cache-control": "max-age=86400"}, media_type=_TYPES[name])
