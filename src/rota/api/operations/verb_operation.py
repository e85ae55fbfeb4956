"""Operations of verbs: parse the request as the verb declares it, call the client, build the response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import searchable, told, told_of_related, visible
from rota.api.http.problems import payload_at
from rota.api.http.rejection import BadBody
from rota.api.operations.operation import Operation
from rota.api.operations.query import NoQuery, checked_query
from rota.api.operations.request import client_of, header, json_body, key_of, shaped
from rota.api.operations.response import answer, at
from rota.api.operations.routing import Declared as Route
from rota.client.client import Client
from rota.core.access.roles import Role
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.redaction import Discreet
from rota.core.runs.run import RunFilter
from rota.errors import UnknownOption
from rota.verbs.answers import document_of, is_silent
from rota.verbs.bounds import placed
from rota.verbs.pages import place_of
from rota.verbs.parameters import (
    Parameter,
    Place,
    given,
    has_place,
    item_of,
    request_of,
    unknown_options,
    without_bounds,
)
from rota.verbs.revisions import condition_in, etag
from rota.verbs.verb import Declared, verbs_of
from rota.verbs.wire import Body

Act = Callable[[Request, Client, Mapping[str, Any]], Awaitable[Any]]
"""Carry out a verb for the caller of a request: `act(request, client, arguments)` returns what the verb returns."""


def routes_of(kind: type, part: str = "", below: str = "", **by_hand: Operation | Act) -> list[Route]:
    """Return the routes of the verbs of a class of the client, of those whose path begins with `below`. `by_hand`
    replaces the operations of some verbs, or only their acts."""
    operations: dict[tuple[str, bool], dict[str, Operation]] = {}
    for declared in verbs_of(kind, part):
        if not declared.verb.path.startswith(below):
            continue
        place = (declared.verb.path, declared.verb.scoped)
        other = by_hand.get(declared.name)
        operation = other if isinstance(other, Operation) else operation_of(declared, other)
        methods = operations.setdefault(place, {})
        if declared.verb.method in methods:
            name = declared.function.__qualname__
            raise TypeError(f"{declared.verb.method} {declared.verb.path} is declared twice, once by {name}")
        methods[declared.verb.method] = operation
    return [Route(path, methods, scoped=scoped) for (path, scoped), methods in operations.items()]


def operation_of(declared: Declared, act: Act | None = None) -> Operation:
    """Return the operation of a verb. `act` replaces the call of the client's method."""
    request, verb = request_of(declared), declared.verb

    async def endpoint(request: Request) -> Response:
        return await _respond(declared, request, act)

    return Operation(
        endpoint=endpoint,
        name=declared.operation,
        role=verb.role,
        summary=declared.summary,
        description=declared.description,
        query=request.query or NoQuery,
        body=request.body,
        body_optional=verb.optional_body,
        answers=_shape(declared),
        lists=request.lists or (verb.answer is not None and verb.answer.is_page),
        status=204 if is_silent(declared) else verb.status,
        also=(201,) if verb.created is not None else (),
        keyed=has_place(request, Place.KEY),
        conditional=has_place(request, Place.CONDITION),
        takes=verb.takes,
        gives=verb.gives,
    )


def _shape(declared: Declared) -> Any:
    request = request_of(declared)
    if declared.verb.answer is not None:
        return declared.verb.answer.shape
    return None if is_silent(declared) else item_of(request.returns) if request.lists else request.returns


async def _respond(declared: Declared, request: Request, act: Act | None) -> Response:
    shape = request_of(declared)
    body: Any = None
    if shape.body is not None:
        body = await json_body(request, default={} if declared.verb.optional_body else None)
    arguments = _arguments(declared, request, body)
    client = await client_of(request)
    done = act(request, client, arguments) if act else _method(client, declared)(**arguments)
    with _payload_in(declared, body):
        result = await done
    if is_silent(declared):
        return Response(status_code=204)
    view = await view_of_run(request, client, result) if declared.verb.about_run else partial(visible, request)
    query: Any = None if declared.verb.page is None else checked_query(request, shape.query or NoQuery)
    limit, cursor = (None, None) if query is None else (query.limit, query.cursor)
    document = document_of(declared, result, limit, cursor, visible=view)
    created = declared.verb.created
    status = 201 if created is not None and created(result) else declared.verb.status
    return answer(document, status, _headers(declared, result))


async def view_of_run(request: Request, client: Client, result: Any = None) -> Callable[[Any], Any]:
    """Return how the caller sees what is told about the run in the path; related runs have secrets of their own."""
    if identity_of(request).may(Role.ADMIN):
        return partial(told, request, None)
    # In a transaction of its own, and only for callers who may not see secrets: a payload never changes.
    if isinstance(result, list) and result and isinstance(result[0], RelatedRun):
        runs = await client.get_many([related.id for related in result], gone_ok=True)
        return partial(told_of_related, {run.id: Discreet(run) for run in runs})
    run = await client.get(request.path_params["id"], steps=False)
    return partial(told, request, Discreet(run))


def _method(client: Client, declared: Declared) -> Any:
    return getattr(getattr(client, declared.part) if declared.part else client, declared.name)


def _payload_in(declared: Declared, body: Any) -> AbstractContextManager[None]:
    """Let the pointers of errors begin where the payload is in the body."""
    place = declared.verb.payload_at
    if place is None:
        return nullcontext()
    return payload_at(place if isinstance(place, str) else lambda error: place(error, body))


def _arguments(declared: Declared, request: Request, plain: Any) -> dict[str, Any]:
    """Return the arguments of the client's method, from all parts of the request."""
    shape = request_of(declared)
    arguments: dict[str, Any] = dict(declared.verb.fixed)
    if shape.body is not None:
        _take_body(declared, plain, request.path_params, arguments)
    query: dict[str, Any] = {}
    if shape.query is not None:
        query = given(checked_query(request, shape.query))
        for parameter in shape.in_query:
            arguments |= _searchable(request, parameter.read(query))
    for parameter in shape.in_path:
        # A parameter with a default may be missing in one of several routes.
        if parameter.wire_name in request.path_params:
            arguments[parameter.name] = request.path_params[parameter.wire_name]
    for parameter in shape.in_cursor:
        cursor = query.get("cursor")
        arguments[parameter.name] = None if cursor is None else place_of(cursor, parameter.annotation)
    for parameter in shape.in_head:
        arguments[parameter.name] = _of_head(parameter.place, request)
    return arguments


def _take_body(declared: Declared, plain: Any, path: Mapping[str, Any], arguments: dict[str, Any]) -> None:
    """Add the arguments that the body contains. Options that it should not contain go on to the method, which refuses
    them, with the same words for every caller."""
    shape, form = request_of(declared), declared.verb.body
    if form is not None and form.translate is not None and isinstance(plain, dict):
        plain = form.translate(plain)
    if others := unknown_options(declared, plain):
        arguments |= others
        plain = {name: value for name, value in plain.items() if name not in others}
    if form is not None:
        arguments |= _of_whole(form, plain, path)
    else:
        _take(shape.in_body, shaped(plain, without_bounds(shape.body)), arguments)


def _take(parameters: Iterable[Parameter], shape: msgspec.Struct | None, arguments: dict[str, Any]) -> None:
    """Add the arguments that a query or body contains."""
    for parameter in parameters:
        value = getattr(shape, parameter.name, UNSET)
        if value is not UNSET:
            arguments[parameter.name] = value if parameter.decode is None or value is None else parameter.decode(value)


def _of_head(place: Place, request: Request) -> Any:
    """Return the argument from the headers of the request."""
    match place:
        case Place.KEY:
            return key_of(request)
        case Place.CONDITION:
            return condition_in(header(request, b"if-match"), header(request, b"if-none-match"))
        case _:
            return identity_of(request).actor


def _of_whole(form: Body, plain: Any, path: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments that a whole body stands for. What both the body and the path name must be the same."""
    if isinstance(form.shape, type) and issubclass(form.shape, msgspec.Struct):
        return form.decode(shaped(plain, form.shape), path)
    if not isinstance(plain, dict):
        raise BadBody("$", "must be an object")
    for name, value in path.items():
        if plain.get(name, value) != value:
            raise BadBody(f"$.{name}", f"is {plain[name]!r:.80}, but the path says {value!r:.80}")
    try:
        return form.decode(plain, path)
    except UnknownOption as error:
        raise placed(error, plain) from None


def _searchable(request: Request, arguments: dict[str, Any]) -> dict[str, Any]:
    """Limit filters of runs to what the caller may see."""
    filters = {name: searchable(request, value) for name, value in arguments.items() if isinstance(value, RunFilter)}
    return {**arguments, **filters}


def _headers(declared: Declared, result: Any) -> dict[str, str] | None:
    headers: dict[str, str] = {}
    revision = getattr(result, declared.verb.etag, None)
    if revision is not None:
        headers["etag"] = etag(revision)
    if declared.verb.location is not None:
        names = {name: quote(str(getattr(result, name)), safe="") for name in ("id", "name") if hasattr(result, name)}
        headers["location"] = at("/api/v1" + declared.verb.location.format(**names))
    return headers or None
