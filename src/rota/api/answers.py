"""Answers: values of the model as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from starlette.responses import Response

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
