"""What a route does, said once: who may use it, what it takes, what it answers. Its documentation is drawn from it."""

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
    """`role` None: for everybody. `query` and `body` are the shapes of what it takes, `answers` that of what it says;
    without a `query`, whatever stands behind the question mark is ignored.

    `takes`: an example of a body; `gives`: one of an answer. `media` if it is not JSON. `lists`: a page of `answers`.
    `keyed`: it heeds an `Idempotency-Key`.
    """

    endpoint: Endpoint
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
    media: str = "application/json"
    takes: Any = None
    gives: Any = None

    @property
    def name(self) -> str:
        return getattr(self.endpoint, "__name__", "")


def operation(role: Role | None, **facts: Any) -> Callable[[Endpoint], Operation]:
    """Decorates the function that answers; its docstring is what readers of the documentation see."""

    def declare(endpoint: Endpoint) -> Operation:
        summary, _, description = (inspect.getdoc(endpoint) or "").partition("\n")
        return Operation(endpoint=endpoint, role=role, summary=summary, description=description.strip(), **facts)

    return declare
