"""Exceptions as RFC 9457 problems."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from rota.api.http.rejection import EnqueuesTooFast
from rota.errors import BadConfig, BadPayload, BadTrigger, NotSignedIn, RotaError, TooManyTries, Unavailable

_RETRY_AFTER = {"retry-after": "2"}
_LONGEST_DETAIL = 1_000  # messages quote the caller's input, which may be long
_LONGEST_POINTER = 1_000
_STEP = re.compile(r"""\.([^.\[]+)|\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""")


def problem(error: RotaError, pointer: str = "#") -> Response:
    """Build the response for an exception. `pointer` is where in the body the error's own path begins."""
    status = error.status
    if isinstance(error, BadConfig):  # the server is misconfigured; the caller did nothing wrong
        status = Unavailable.status
    facts: dict[str, Any] = {"detail": error.message[:_LONGEST_DETAIL]}
    if error.hint:
        facts["hint"] = error.hint
    if isinstance(error, BadTrigger) and error.field:
        facts["field"] = error.field
    path: str | None = getattr(error, "path", None)
    if path is not None or pointer != "#":
        facts["pointer"] = pointer + pointer_of(path or "$")
    return _answer(status, error.code, facts, _headers(error, status))


@contextmanager
def payload_at(place: str | Callable[[BadPayload], str]) -> Iterator[None]:
    """Prefix the path of a `BadPayload` with the place of the payload in the body, which may depend on the error."""
    try:
        yield
    except BadPayload as error:
        error.path = (place if isinstance(place, str) else place(error)) + error.path[1:]
        raise


def _headers(error: RotaError, status: int) -> Mapping[str, str] | None:
    match error:
        case TooManyTries() | EnqueuesTooFast():
            return {"retry-after": str(math.ceil(error.seconds))}
        case NotSignedIn():
            return {"www-authenticate": 'Bearer realm="rota"'}
        case _:
            return _RETRY_AFTER if status == Unavailable.status else None


def unexpected(request_id: str) -> Response:
    """Build the response for an unexpected exception. Details are only in the log, under the request id."""
    return _answer(500, "internal", {"detail": f"internal error; see the server's log for request {request_id}"})


def http_problem(scope: Scope, error: HTTPException) -> Response:
    """Build the response for what Starlette refuses: an unknown path or a wrong method."""
    path = Request(scope).url.path[:_LONGEST_DETAIL]
    detail = f"{path} does not support {scope['method']}"
    if error.status_code == 404:
        detail = f"there is nothing at {path}"
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    headers = dict(error.headers or {})
    if "Allow" in headers:  # Starlette joins a set: sort it, to be deterministic
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
    return _answer(error.status_code, code, {"detail": detail}, headers)


def pointer_of(path: str) -> str:
    """Convert `$.user['first name'][3]` to the JSON pointer `/user/first name/3`, cut after a whole step if it is too
    long."""
    pointer = ""
    for name, index, quoted in _STEP.findall(path):
        text = _unquoted(quoted) if quoted else name or index
        step = "/" + text.replace("~", "~0").replace("/", "~1")
        if len(pointer) + len(step) > _LONGEST_POINTER:
            break
        pointer += step
    return pointer


def _unquoted(text: str) -> str:
    """Unquote a key, whatever it contains: a failure here would turn the caller's mistake into a 500."""
    try:
        return str(ast.literal_eval(text)).encode(errors="replace").decode()
    except (SyntaxError, ValueError):
        return text[1:-1]


def _answer(status: int, code: str, facts: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    title = HTTPStatus(status).phrase
    content = {"type": f"urn:rota:problem:{code}", "title": title, "status": status, "code": code, **facts}
    return Response(msgspec.json.encode(content), status, headers, media_type="application/problem+json")
