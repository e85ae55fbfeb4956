"""What a request says: its body within limits, its query without unknown words, the client to ask."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
from starlette.requests import Request

from rota.api.refusals import BadBody, BodyTooLarge, NotJson, UnreadableBody
from rota.app import Rota
from rota.client import Client
from rota.core.jsonvalue import Limits, decode, unreadable
from rota.core.names import checked_name
from rota.errors import BadPayload, Invalid, UnknownOption

T = TypeVar("T", bound=msgspec.Struct)

LARGEST_BODY = 1_048_576
_LIMITS = Limits(LARGEST_BODY, max_depth=68)  # a payload of depth 64 lies up to four levels down


async def client_of(request: Request) -> Client:
    app: Rota = request.app.state.rota
    return await app.connect()


async def json_body(request: Request, default: object = None) -> object:
    """`default` if there is no body."""
    raw = await _bounded_body(request)
    if not raw:
        return default
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise NotJson(content_type)
    try:
        return decode(raw, _LIMITS)
    except BadPayload as error:
        raise UnreadableBody(f"the body at {error.path} {error.problem}", hint=error.hint) from None


async def _bounded_body(request: Request) -> bytes:
    """A body that announces its size is refused unread, any other one as soon as it has grown too large."""
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or len(announced) > 12 or int(announced) > LARGEST_BODY:
        raise BodyTooLarge(LARGEST_BODY)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise BodyTooLarge(LARGEST_BODY)
    return bytes(body)


def shaped(value: object, shape: type[T], path: str = "$") -> T:
    """`value` as a `shape`; `path` is where it lies in the body."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as failure:
        error = unreadable(failure, shape.__struct_encode_fields__)
        raise BadBody(path + error.path[1:], error.problem, hint=error.hint) from None


class Query:
    """The parameters of the address; one that is unknown, or given twice where once is meant, is refused."""

    def __init__(self, request: Request, known: Sequence[str]) -> None:
        self._values = request.query_params
        for name in self._values:
            if name not in known:
                raise UnknownOption(name[:100], known, where=f"{request.method} {request.url.path}")

    def all(self, name: str) -> list[str]:
        return self._values.getlist(name)

    def one(self, name: str) -> str | None:
        values = self.all(name)
        if len(values) > 1:
            raise Invalid(f"{name} is given {len(values)} times", hint="give it once")
        return checked_name(values[0], name) if values else None

    def instant(self, name: str) -> datetime | None:
        text = self.one(name)
        if text is None:
            return None
        with contextlib.suppress(ValueError):
            at = datetime.fromisoformat(text)
            if at.tzinfo is not None:
                return at
        raise Invalid(f"{name} cannot be {text!r:.80}", hint="write a time with a zone: 2026-01-31T08:00:00Z")

    def flag(self, name: str) -> bool | None:
        text = self.one(name)
        if text not in (None, "true", "false"):
            raise Invalid(f"{name} must be true or false, not {text!r:.80}")
        return None if text is None else text == "true"

    def number(self, name: str, default: int) -> int:
        text = self.one(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise Invalid(f"{name} must be a number, not {text!r:.80}")
        return int(text)
