"""JSON responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.errors import ChangedMeanwhile
from rota.verbs.revisions import etag

_JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode


class Json(Response):
    """JSON response with raw headers; Starlette would process each of them."""

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _JSON]
        if headers:
            self.raw_headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Build a JSON response. Names of `headers` are in lower case."""
    return Json(_encode(value), status, headers)


def page(items: Sequence[object], next_cursor: str | None = None) -> dict[str, object]:
    """Return a page of a list, as JSON."""
    return {"items": items, "next_cursor": next_cursor}


def require_revision(request: Request, revision: object | None) -> None:
    """Check `If-Match` against the `revision`; None means that nothing exists, which no `If-Match` can match."""
    condition = request.headers.get("if-match")
    if condition is None:
        return
    etags = [part.strip() for part in condition.split(",")]
    if revision is None or ("*" not in etags and etag(revision) not in etags):
        raise ChangedMeanwhile(request.url.path.rpartition("/api/v1")[2][:200])


_root: ContextVar[str] = ContextVar("rota_root", default="")


def mounted_at(root: str) -> None:
    """Set the mount path for the current request."""
    _root.set(root.rstrip("/"))


def own_path() -> str:
    """Return the path below which everything is rota's: the path of its cookies."""
    return _root.get() or "/"


def at(path: str) -> str:
    """Return `path` as a browser must request it."""
    return _root.get() + path
