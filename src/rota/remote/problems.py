"""Turn problems (RFC 9457) back into the exceptions that the server raised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from rota.errors import (
    BadPayload,
    BadTrigger,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    OutOfRange,
    RotaError,
    TooManyTries,
    Unavailable,
    UnknownOption,
)

_FAMILIES: dict[int, type[RotaError]] = {401: Denied, 403: Denied, 404: NotFound, 409: Conflict, 412: Conflict}
_LONGEST = 1_000
_PAYLOAD = re.compile(r"^#(/(runs|documents)/\d+|/changes|/schedule)?/payload(?=/|$)")


class Problem(msgspec.Struct):
    """The members of a problem that clients read."""

    code: str
    status: int
    detail: str = ""
    hint: str | None = None
    field: str | None = None
    pointer: str | None = None


class ServerTrouble(Unavailable):
    """The server cannot be reached, or does not answer as rota does."""


def error_of(status: int, body: bytes, headers: Mapping[str, str], where: str) -> RotaError:
    """Return the exception for a response. `where` is the server's address, for callers who used a wrong one."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _not_a_problem(status, where, headers.get("location"))
    return raised(problem, headers)


def raised(problem: Problem, headers: Mapping[str, str] | None = None) -> RotaError:
    """Build the exception of a problem. Its message was built by the server, so the class's own constructor is not
    called."""
    kind = _kinds().get(problem.code) or _family(problem.status)
    if problem.status == Unavailable.status and not issubclass(kind, Unavailable):
        kind = Unavailable  # for example BadConfig: it is the server's configuration, not the caller's
    error = kind.__new__(kind)
    RotaError.__init__(error, problem.detail or problem.code, hint=problem.hint)
    facts: dict[str, Any] = vars(error)
    facts["code"] = problem.code
    if isinstance(error, BadPayload):
        facts |= {"path": _path(problem.pointer), "problem": problem.detail}
    if isinstance(error, OutOfRange | UnknownOption):
        facts["path"] = None if problem.pointer is None else _path(problem.pointer)
    if isinstance(error, UnknownOption):  # its name is in the message; the pointer leads to one that the body has
        facts["option"] = (problem.pointer or "").rpartition("/")[2]
    if isinstance(error, BadTrigger):
        facts["field"] = problem.field
    if isinstance(error, TooManyTries):
        facts["seconds"] = retry_after(headers or {}) or 0.0
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the header's seconds; dates are not supported."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _family(status: int) -> type[RotaError]:
    if status >= 500:
        return RotaError if status == 500 else Unavailable
    return _FAMILIES.get(status, Invalid)


def _not_a_problem(status: int, where: str, location: str | None) -> RotaError:
    """Build the error for a response that is not a problem: a proxy's page, or another program's."""
    if status in (401, 403):
        return Denied(f"{where} answered {status}", hint="a proxy in front of rota refuses the request")
    hint = "check that this is the address of a rota server"
    if 300 <= status < 400:
        hint = f"it redirects to {location!r:.200}; use that address" if location else hint
    return ServerTrouble(f"{where} answered {status}, but not as a rota server does", hint=hint)


def _path(pointer: str | None) -> str:
    """Convert `#/payload/user/age` to `$.user.age`, wherever in the body the payload was."""
    parts = _PAYLOAD.sub("#", pointer or "").removeprefix("#").split("/")[1:]
    return "".join(["$", *(f".{part.replace('~1', '/').replace('~0', '~')}" for part in parts)])[:_LONGEST]


@cache
def _kinds() -> dict[str, type[RotaError]]:
    """Map codes to the exception classes of `rota.errors`."""
    return {kind.code: kind for kind in _subclasses(RotaError) if kind.__module__.startswith("rota.errors")}


def _subclasses(kind: type[RotaError]) -> Iterator[type[RotaError]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


class NotOffered(Invalid):
    """The verb needs direct access to the database."""

    code = "not-offered"

    def __init__(self, verb: str) -> None:
        hint = "connect to the database: app.connect(), --database"
        super().__init__(f"{verb} is not available over HTTP", hint=hint)
