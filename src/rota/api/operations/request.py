"""Reading requests: the client to use, the body within limits, the shapes of values."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from datetime import datetime
from functools import cache
from types import coroutine
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from rota.api.http.rejection import BadBody, BodyTooLarge, BodyTooSlow, NotJson, UnreadableBody
from rota.app import Rota
from rota.client.client import Client
from rota.core.access.roles import Identity
from rota.errors import BadPayload
from rota.values.json import Limits, decode, unreadable

T = TypeVar("T", bound=msgspec.Struct)

ASKS = "rota.identity"
"""Key of the caller's identity in the scope of an authenticated request."""
LARGEST_BODY = 1_048_576
YEARS = range(1970, 2200)  # instants outside are refused as mistakes
_PATIENCE = 30.0
_LIMITS = Limits(LARGEST_BODY, max_depth=68)  # a payload of depth 64 is nested up to four levels deep in a body


async def client_of(request: Request) -> Client:
    """Return the client to use, limited to the caller's scope, so that no route has to think of it."""
    app: Rota = request.app.state.rota
    client = await app.connect()
    asks: Identity | None = request.scope.get(ASKS)
    return client if asks is None or asks.scope is None else client.within(asks.scope)


def key_of(request: Request) -> str | None:
    """Return the request's idempotency key. A repeated request gets the first answer for 24 hours."""
    return header(request, b"idempotency-key")


def header(request: Request, name: bytes) -> str | None:
    """Return the first header of that lower-case name, without building a mapping of all of them."""
    for header_name, value in request.scope["headers"]:
        if header_name == name:
            return str(value, "latin-1")
    return None


async def json_body(request: Request, default: object = None) -> object:
    """Decode the body; return `default` if there is none."""
    raw = await _bounded_body(request)
    if not raw:
        return default
    content_type = header(request, b"content-type") or ""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise NotJson(content_type)
    try:
        return decode(raw, _LIMITS)
    except BadPayload as error:
        raise UnreadableBody(f"the body at {error.path} {error.problem}", hint=error.hint) from None


async def _bounded_body(request: Request) -> bytes:
    """Read the body within limits. One that announces too large a size is refused unread, any other as soon as it has
    grown too large."""
    announced = header(request, b"content-length") or "0"
    if not announced.isdecimal() or len(announced) > 12 or int(announced) > LARGEST_BODY:
        raise BodyTooLarge(LARGEST_BODY)
    receiving = request.receive().__await__()
    try:
        waits_for = next(receiving)
    # Fast path: the body has usually arrived with the head, and setting a timeout would take longer than reading it.
    except StopIteration as there:
        if not there.value.get("more_body"):
            return _part(there.value)
        first = _at_once(there.value)
    else:
        first = _going_on(receiving, waits_for)
    try:
        async with asyncio.timeout(_PATIENCE):
            return await _whole(first, request.receive)
    except TimeoutError:
        raise BodyTooSlow(_PATIENCE) from None


async def _whole(first: Awaitable[Message], receive: Receive) -> bytes:
    message = await first
    body = bytearray(_part(message))
    while message.get("more_body"):
        message = await receive()
        body += _part(message)
        if len(body) > LARGEST_BODY:
            raise BodyTooLarge(LARGEST_BODY)
    return bytes(body)


def _part(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    body: bytes = message.get("body", b"")
    if len(body) > LARGEST_BODY:
        raise BodyTooLarge(LARGEST_BODY)
    return body


async def _at_once(message: Message) -> Message:
    return message


@coroutine
def _going_on(begun: Generator[Any, None, Message], waits_for: object) -> Generator[Any, None, Message]:
    """Continue a coroutine that was started outside and already awaits something."""
    yield waits_for
    return (yield from begun)


def shaped(value: object, shape: type[T], path: str = "$") -> T:
    """Convert `value` to a `shape`; `path` is where it is in the body."""
    try:
        result = msgspec.convert(value, shape)
    except msgspec.ValidationError as failure:
        error = unreadable(failure, shape.__struct_encode_fields__)
        raise BadBody(path + error.path[1:], error.problem, hint=error.hint) from None
    for name, external_name in _timed(shape):
        if not _in_time(getattr(result, name)):
            raise BadBody(f"{path}.{external_name}", f"must be between {YEARS.start} and {YEARS.stop}")
    return result


def shaped_all(values: list[Any], shape: type[T], path: str) -> list[T]:
    """Convert each value like `shaped`, but in one call, which is much faster as long as all are valid."""
    try:
        results: list[T] = msgspec.convert(values, list[shape])  # type: ignore[valid-type]
        if all(_in_time(getattr(result, name)) for name, _ in _timed(shape) for result in results):
            return results
    except msgspec.ValidationError:
        pass
    return [shaped(value, shape, f"{path}[{place}]") for place, value in enumerate(values)]


@cache
def _timed(shape: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """Return the fields that may hold an instant, with their external names."""
    fields = msgspec.structs.fields(shape)
    return [(field.name, field.encode_name) for field in fields if "datetime" in repr(field.type)]


def _in_time(value: object) -> bool:
    if isinstance(value, datetime):
        return value.year in YEARS
    return not isinstance(value, list | tuple) or all(_in_time(item) for item in value)
