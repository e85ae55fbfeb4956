"""Verbs over HTTP: a subclass of a part of the client whose declared verbs send requests instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from rota.client.parts import PARTS
from rota.errors import BadDuration, RotaError, UnknownOption
from rota.remote.decode import read, undecodable
from rota.remote.problems import NotOffered
from rota.remote.transport import Transport, once, path_of
from rota.values.durations import Duration, parse_duration
from rota.verbs.bounds import placed
from rota.verbs.pages import MOST, cursor_at
from rota.verbs.parameters import Place, has_place, item_of, request_of, unknown_options
from rota.verbs.revisions import written_condition
from rota.verbs.spread import dotted
from rota.verbs.verb import Declared, declarations, verbs_of
from rota.verbs.wire import answer_in

F = TypeVar("F", bound=Callable[..., Any])


class Remote:
    """Base of the remote parts: `class RemoteQuotas(Remote, QuotasClient)` has the verbs of `QuotasClient` over HTTP.

    Verbs that the subclass itself defines stay. Methods that are not declared as verbs need the database, and raise
    `NotOffered`.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _completed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments to send, with what only this client knows."""
        return arguments

    def __init_subclass__(cls, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        own = vars(cls)
        for name, function in inspect.getmembers(cls, inspect.isfunction):
            if name.startswith("_") or name in own or _is_remote(function):
                continue
            setattr(cls, name, _sending(cls, name) if declarations(function) else _refusing(_named(cls, name)))


def local(method: F) -> F:
    """Keep a method that only calls verbs, which send requests: `find = local(WorkersClient.find)`."""
    return method


def _is_remote(function: Callable[..., Any]) -> bool:
    return function.__module__.startswith("rota.remote")


def _named(cls: type, name: str) -> str:
    """Return the verb as callers write it: `client.tokens.check`."""
    part = next(part for part, kind in PARTS.items() if issubclass(cls, kind))
    return ".".join(("client", *((part,) if part else ()), name))


def _refusing(name: str) -> Callable[..., Any]:
    async def refuse(self: Remote, *_: object, **__: object) -> None:
        raise NotOffered(name)

    return refuse


def _sending(cls: type, name: str) -> Callable[..., Any]:
    """Return the verb's method over HTTP. Of several routes, the one whose path names the most given arguments."""
    routes = sorted(
        (declared for declared in verbs_of(cls) if declared.name == name),
        key=lambda declared: len(declared.verb.placeholders()),
        reverse=True,
    )
    signature = inspect.signature(routes[0].function)

    @functools.wraps(routes[0].function)
    async def send(self: Remote, *positional: Any, **named: Any) -> Any:
        arguments = self._completed(_arguments(signature, routes[0], self, positional, named))
        declared = routes[0] if len(routes) == 1 else next(route for route in routes if _fits(route, arguments))
        try:
            return await _ask(self._transport, declared, arguments)
        except UnknownOption as error:
            raise placed(error, named) from None

    return send


def _arguments(
    signature: inspect.Signature,
    declared: Declared,
    self: Remote,
    positional: tuple[Any, ...],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    bound = signature.bind(self, *positional, **named)
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments |= arguments.pop(parameter.name)
    form = declared.verb.body
    if form is not None and form.translate is not None:
        arguments = dict(form.translate(arguments))
    return arguments


def _fits(route: Declared, arguments: Mapping[str, Any]) -> bool:
    verb = route.verb
    placed = [name for name in arguments if verb.wire_name(name) in verb.placeholders()]
    fixed = all(arguments.get(name) == value for name, value in verb.fixed.items())
    return fixed and all(arguments[name] is not None for name in placed)


async def _ask(transport: Transport, declared: Declared, arguments: Mapping[str, Any]) -> Any:
    request, verb = request_of(declared), declared.verb
    parts: dict[Place, dict[str, Any]] = {place: {} for place in Place}
    for parameter in request.parameters.values():
        if parameter.name in arguments and not (verb.body is not None and parameter.place is Place.BODY):
            parts[parameter.place] |= parameter.written(arguments[parameter.name])
    path = path_of(*(_segment(segment, parts[Place.PATH]) for segment in verb.path.strip("/").split("/")))
    headers = once(parts[Place.KEY].get("idempotency_key")) if has_place(request, Place.KEY) else {}
    headers |= written_condition(parts[Place.CONDITION].get("expected_revision"))
    if verb.page is not None:
        return await _pages(transport, declared, path, dotted(parts[Place.QUERY]), arguments)
    body = _body(declared, arguments, parts[Place.BODY])
    answer = await transport.ask(
        verb.method,
        path,
        dotted(parts[Place.QUERY]),
        body,
        headers,
        again=arguments[verb.repeatable] is not None if isinstance(verb.repeatable, str) else verb.repeatable,
        waits=_seconds(arguments[verb.waits]) if verb.waits is not None else 0.0,
    )
    if answer.status == 204:
        return None
    if request.lists:
        items = read(answer.body, dict[str, Any]).get("items", ())
        return [_result(declared, item, item_of(request.returns)) for item in items]
    return _result(declared, read(answer.body, Any), request.returns)


def _seconds(wait: Duration | None) -> float:
    """Return how long the server may wait. What is no duration is sent as it is, and refused there."""
    try:
        return 0.0 if wait is None else parse_duration(wait).total_seconds()
    except BadDuration:
        return 0.0


def _body(declared: Declared, arguments: Mapping[str, Any], fields: Mapping[str, Any]) -> Any:
    """Return the body: a field for each parameter, or as the verb forms it."""
    request, form = request_of(declared), declared.verb.body
    if form is None:
        return {**unknown_options(declared, arguments), **fields} if request.body is not None else None
    places = {name: parameter.place for name, parameter in request.parameters.items()}
    own = {name: value for name, value in arguments.items() if places.get(name, Place.BODY) is Place.BODY}
    path = {name: value for name, value in arguments.items() if places.get(name) is Place.PATH}
    own.pop("self", None)
    return form.encode(own, path)


def _segment(segment: str, path: Mapping[str, Any]) -> str:
    """Return a part of the path, with its placeholder filled in."""
    return str(path[segment[1:-1]]) if segment.startswith("{") else segment


async def _pages(
    transport: Transport, declared: Declared, path: str, query: Mapping[str, Any], arguments: Mapping[str, Any]
) -> list[Any]:
    """Read pages until the list ends, or the caller's `limit` is reached."""
    paging = declared.verb.page
    assert paging is not None
    item_type = item_of(request_of(declared).returns)
    wanted = arguments.get("limit")
    start = None if paging.after is None else arguments.get(paging.after)
    cursor = None if start is None else cursor_at(start)
    items: list[Any] = []
    while True:
        # A limit that the verb refuses is sent as it is, so that it is refused here as well.
        size = MOST if wanted is None else wanted - len(items)
        part = read(
            (await transport.ask(declared.verb.method, path, {**query, "limit": size, "cursor": cursor})).body,
            dict[str, Any],
        )
        items += [_result(declared, item, item_type) for item in part.get("items", ())]
        cursor = part.get("next_cursor")
        if cursor is None or len(items) == wanted:
            return items


def _result(declared: Declared, plain: Any, kind: Any) -> Any:
    try:
        if declared.verb.answer is not None:
            return declared.verb.answer.decode(plain)
        return answer_in(plain, kind)
    except (msgspec.ValidationError, RotaError, KeyError, TypeError) as error:
        raise undecodable(error) from None
