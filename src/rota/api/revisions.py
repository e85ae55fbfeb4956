"""ETags: what a caller has seen, and changes that depend on nobody having changed it since."""

from __future__ import annotations

from starlette.requests import Request

from rota.errors import ChangedMeanwhile


def etag(revision: object) -> str:
    return f'"{revision}"'


def require_revision(request: Request, revision: object | None) -> None:
    """`revision` None: there is nothing, so nothing that was seen of it can still be so."""
    given = request.headers.get("if-match")
    if given is None:
        return
    known = [part.strip() for part in given.split(",")]
    if revision is None or ("*" not in known and etag(revision) not in known):
        raise ChangedMeanwhile(request.url.path.rpartition("/api/v1")[2][:200])
