"""Declaration of an operation: who may use it, what it takes and returns. Its documentation is generated from it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.operations.query import NoQuery
from rota.core.access.roles import Role

Endpoint = Callable[[Request], Awaitable[Response]]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of a route. `role` None: anyone may use it. `query` and `body` are the shapes of what it takes,
    `answers` that of its response; without a `query`, query parameters are ignored.

    `takes` is an example of a body and `gives` one of a response. `media` is the media type if it is not JSON. `lists`:
    the response is a page of `answers`. `keyed`: it supports an `Idempotency-Key`; `conditional`: `If-Match`.
    """

    endpoint: Endpoint
    name: str
    """The operation's id in OpenAPI."""
    role: Role | None
    summary: str
    description: str = ""
    query: type[msgspec.Struct] | None = NoQuery
    body: Any = None
    body_optional: bool = False
    answers: Any = None
    lists: bool = False
    status: int = 200
    also: tuple[int, ...] = ()
    keyed: bool = False
    conditional: bool = False
    media: str = "application/json"
    takes: Any = None
    gives: Any = None


def operation(role: Role | None, **facts: Any) -> Callable[[Endpoint], Operation]:
    """Decorate the function that responds. Its docstring is its documentation: the first line is the summary."""

    def declare(endpoint: Endpoint) -> Operation:
        summary, _, description = (inspect.getdoc(endpoint) or "").partition("\n")
        name = getattr(endpoint, "__name__", "")
        return Operation(
            endpoint=endpoint, name=name, role=role, summary=summary, description=description.strip(), **facts
        )

    return declare
