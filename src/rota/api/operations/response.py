"""Answers: values of the model as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.errors import ChangedMeanwhile

_JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode


class Json(Response):
    """With its headers as they are sent: Starlette would look at each of them first."""

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _JSON]
        if headers:
            self.raw_headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The names of `headers` are in small letters."""
    return Json(_encode(value), status, headers)


def page(items: Sequence[object], next_cursor: str | None = None) -> dict[str, object]:
    return {"items": items, "next_cursor": next_cursor}


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


_root: ContextVar[str] = ContextVar("rota_root", default="")


def mounted_at(root: str) -> None:
    """For the request that is being answered."""
    _root.set(root.rstrip("/"))


def own_path() -> str:
    """Where all of ours is, and nobody else's: what a cookie is for."""
    return _root.get() or "/"


def at(path: str) -> str:
    """`path` as a browser has to ask for it."""
    return _root.get() + path
