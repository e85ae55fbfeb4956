"""What a request says: its body within limits, its query without unknown words, the client to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from rota.api.refusals import BadBody, BodyTooLarge, BodyTooSlow, NotJson, UnreadableBody
from rota.app import Rota
from rota.client import Client
from rota.core.jsonvalue import Limits, decode, unreadable
from rota.errors import BadPayload

T = TypeVar("T", bound=msgspec.Struct)

LARGEST_BODY = 1_048_576
YEARS = range(1970, 2200)  # what lies beyond cannot be counted on
_PATIENCE = 30.0
_LIMITS = Limits(LARGEST_BODY, max_depth=68)  # a payload of depth 64 lies up to four levels down


async def client_of(request: Request) -> Client:
    app: Rota = request.app.state.rota
    return await app.connect()


def key_of(request: Request) -> str | None:
    """By which it is known again: for 24 hours it gets the answer of the first time."""
    return request.headers.get("idempotency-key")


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
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
                if len(body) > LARGEST_BODY:
                    raise BodyTooLarge(LARGEST_BODY)
                if not message.get("more_body"):
                    break
    except TimeoutError:
        raise BodyTooSlow(_PATIENCE) from None
    return bytes(body)


def shaped(value: object, shape: type[T], path: str = "$") -> T:
    """`value` as a `shape`; `path` is where it lies in the body."""
    try:
        found = msgspec.convert(value, shape)
    except msgspec.ValidationError as failure:
        error = unreadable(failure, shape.__struct_encode_fields__)
        raise BadBody(path + error.path[1:], error.problem, hint=error.hint) from None
    for name, told in _timed(shape):
        if any(at.year not in YEARS for at in _instants(getattr(found, name))):
            raise BadBody(f"{path}.{told}", f"must lie between {YEARS.start} and {YEARS.stop}")
    return found


@cache
def _timed(shape: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """The fields that may hold an instant, each with its name outside."""
    fields = msgspec.structs.fields(shape)
    return [(field.name, field.encode_name) for field in fields if "datetime" in repr(field.type)]


def _instants(value: object) -> Iterator[datetime]:
    if isinstance(value, datetime):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _instants(item)


def given_in(body: msgspec.Struct) -> dict[str, Any]:
    """What a body says, without what it leaves out."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not msgspec.UNSET}
