"""Parameters of a verb: where each stands in a request, and the shapes of the request's query and body."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Unpack, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from rota.values.durations import format_duration
from rota.values.json import step
from rota.verbs.bounds import Bound, has_bounds, unbounded
from rota.verbs.pages import Cursor, Limit
from rota.verbs.spread import gathered, renames_of, shape_fields, spread, spread_type
from rota.verbs.verb import Declared
from rota.verbs.wire import decoder_of, encode, wire_type

S = TypeVar("S", bound=msgspec.Struct)


class Place(StrEnum):
    """Place of a parameter in a request."""

    PATH = "path"
    QUERY = "query"
    BODY = "body"
    KEY = "key"  # the header Idempotency-Key
    CONDITION = "condition"  # the header If-Match
    ACTOR = "actor"  # the caller's identity
    CURSOR = "cursor"  # within the cursor of a page
    FIXED = "fixed"  # the route fixes it


_PLACES = ((Place.PATH,), (Place.QUERY,), (Place.BODY,), (Place.CURSOR,), (Place.KEY, Place.CONDITION, Place.ACTOR))


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a verb. `wire_name` is its name in the request; `default` is UNSET if it must be given.

    `option`: it is one of the method's `**options`, which is passed on only if it is given. `decode` turns its value in
    a request into the method's argument; None: it stays as it is.
    """

    name: str
    wire_name: str
    place: Place
    annotation: Any
    default: Any = UNSET
    option: bool = False
    decode: Callable[[Any], Any] | None = None

    @property
    def spread(self) -> type[msgspec.Struct] | None:
        """Return the struct whose fields are query parameters, if this parameter is one."""
        return spread_type(self.annotation) if self.place is Place.QUERY else None

    def written(self, value: Any) -> dict[str, Any]:
        """Return the value as it stands in a request, by name."""
        if self.spread is not None:
            return {} if value is None else spread(value)
        return {self.wire_name: encode(value, self.annotation, self.wire_name)}

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the argument of the client's method from the values of a request, by name."""
        if self.spread is not None:
            return {self.name: gathered(self.spread, values)}
        if self.name not in values:
            return {}
        value = values[self.name]
        return {self.name: value if self.decode is None or value is None else self.decode(value)}


class Request(msgspec.Struct, frozen=True):
    """Parts of the requests of a verb. `query` and `body` are the shapes of both.

    `lists`: what it returns is a list, which is written as `{"items": […]}`. Of the parameters, those
    `in_head` are headers, or the caller whom they name. `others`: the method takes further options by name, and itself
    refuses those that it does not know.
    """

    parameters: Mapping[str, Parameter]
    query: type[msgspec.Struct] | None
    body: Any
    returns: Any
    lists: bool
    others: bool
    in_path: Sequence[Parameter]
    in_query: Sequence[Parameter]
    in_body: Sequence[Parameter]
    in_cursor: Sequence[Parameter]
    in_head: Sequence[Parameter]


@cache
def request_of(declared: Declared) -> Request:
    """Derive the request of a verb from its declaration and its signature."""
    hints = get_type_hints(declared.function, include_extras=True)
    parameters = {parameter.name: parameter for parameter in _parameters(declared, hints)}
    name = _shape_name(declared)
    return Request(
        parameters,
        _shape(f"{name}Query", declared, parameters.values(), Place.QUERY),
        declared.verb.body.shape
        if declared.verb.body is not None
        else _shape(f"{name}Body", declared, parameters.values(), Place.BODY),
        hints.get("return"),
        _lists(declared, hints.get("return")),
        _takes_others(declared),
        *([parameter for parameter in parameters.values() if parameter.place in places] for places in _PLACES),
    )


def _signature(declared: Declared) -> Sequence[inspect.Parameter]:
    return list(inspect.signature(declared.function).parameters.values())[1:]


def _takes_others(declared: Declared) -> bool:
    if declared.verb.body is not None:
        return declared.verb.body.others
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in _signature(declared))


def unknown_options(declared: Declared, plain: Any) -> dict[str, Any]:
    """Return the fields of a body that are no parameters, if the method refuses such options itself."""
    if not request_of(declared).others or not isinstance(plain, Mapping):
        return {}
    taken = {*inspect.signature(declared.function).parameters}  # `actor` is no option
    for parameter in request_of(declared).parameters.values():
        taken |= {parameter.name, parameter.wire_name}
    if declared.verb.body is not None:
        taken |= {*declared.verb.body.shape.__struct_encode_fields__}
    return {name: value for name, value in plain.items() if name not in taken}


def _parameters(declared: Declared, hints: Mapping[str, Any]) -> Sequence[Parameter]:
    parameters: list[Parameter] = []
    placeholders = set(declared.verb.placeholders())
    for parameter in _signature(declared):
        annotation = hints[parameter.name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            parameters += _options(declared, annotation)
            continue
        default = UNSET if parameter.default is inspect.Parameter.empty else parameter.default
        wire_name = declared.verb.wire_name(parameter.name)
        place = Place.PATH if wire_name in placeholders else _place(declared, parameter.name)
        placeholders.discard(wire_name)  # a further parameter of the same name is a field: `id` of a step of a run
        decode = decoder_of(annotation, wire_name)
        parameters.append(Parameter(parameter.name, wire_name, place, annotation, default, decode=decode))
    if placeholders:
        where = f"the path {declared.verb.path} of {declared.function.__qualname__}"
        raise TypeError(f"{where} names {min(placeholders)!r}, which is no parameter of the method")
    return parameters


def _options(declared: Declared, annotation: Any) -> Sequence[Parameter]:
    """Return the fields of `**options: Unpack[Options]` as parameters; None and "not given" differ, unless a field is
    required."""
    if declared.verb.body is not None and annotation is Any:
        return []  # parts of a document, which has its own shape
    if get_origin(annotation) is not Unpack:
        raise TypeError(f"the options of {declared.operation} have no types: write Unpack[…]")
    (options,) = get_args(annotation)
    parameters: list[Parameter] = []
    for name, kind in get_type_hints(options, include_extras=True).items():
        wire_name, place = declared.verb.wire_name(name), _place(declared, name)
        required = name in options.__required_keys__
        default = UNSET if required else None
        decode = decoder_of(kind, wire_name)
        parameters.append(Parameter(name, wire_name, place, kind, default, not required, decode))
    return parameters


def _place(declared: Declared, name: str) -> Place:
    verb = declared.verb
    if name in verb.fixed:
        return Place.FIXED
    if name in verb.query:  # before `actor`, which is a filter there
        return Place.QUERY
    if name == "actor":
        return Place.ACTOR
    if name == "idempotency_key":
        return Place.KEY
    if name == "expected_revision":
        return Place.CONDITION
    if verb.page is not None and name == verb.page.after:
        return Place.CURSOR
    return Place.QUERY if verb.method in ("GET", "DELETE") else Place.BODY


def _shape_name(declared: Declared) -> str:
    words = (*declared.part.split("_"), *declared.name.split("_"))
    return "".join(word.capitalize() for word in words)


def _shape(name: str, declared: Declared, parameters: Iterable[Parameter], place: Place) -> type[msgspec.Struct] | None:
    paging = declared.verb.page if place is Place.QUERY else None
    chosen = [parameter for parameter in parameters if parameter.place is place]
    fields = [
        field
        for parameter in chosen
        if paging is None or parameter.name != "limit"
        for field in ([_field(parameter)] if parameter.spread is None else shape_fields(parameter.spread))
    ]
    if paging is not None:
        limit = next((parameter for parameter in chosen if parameter.name == "limit"), None)
        fields += [("limit", Limit, paging.size) if limit is None else _field(limit), ("cursor", Cursor | None, None)]
    if not fields:
        return None
    renames = {parameter.name: parameter.wire_name for parameter in chosen if parameter.name != parameter.wire_name}
    for parameter in chosen:
        renames |= {} if parameter.spread is None else renames_of(parameter.spread)
    return _struct(declared.function, name, tuple(fields), tuple(renames.items()), declared.summary)


_structs: dict[object, type[msgspec.Struct]] = {}
_unbounded: dict[type[msgspec.Struct], type[msgspec.Struct]] = {}


def _struct(
    function: Callable[..., Any], name: str, fields: tuple[Any, ...], renames: tuple[tuple[str, str], ...], doc: str
) -> type[msgspec.Struct]:
    """Make the shape once for all routes of a method, so that OpenAPI has it once."""
    key = function, name, tuple(field[0] for field in fields)
    if key not in _structs:
        shape = msgspec.defstruct(name, fields, rename=dict(renames) or None, forbid_unknown_fields=True, kw_only=True)
        shape.__doc__ = doc
        _structs[key] = shape
        free = tuple((field[0], unbounded(field[1]), *field[2:]) for field in fields)
        _unbounded[shape] = msgspec.defstruct(
            name, free, rename=dict(renames) or None, forbid_unknown_fields=True, kw_only=True
        )
    return _structs[key]


def without_bounds(shape: type[S]) -> type[S]:
    """Return the shape that a request is converted to: the verb itself checks the bounds that the shape documents."""
    return _unbounded.get(shape, shape)  # type: ignore[return-value]  # the same fields


def _field(parameter: Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    kind = wire_type(parameter.annotation)
    if parameter.option:
        return parameter.name, kind | None | UnsetType, UNSET
    if parameter.default is UNSET:
        return parameter.name, kind
    default = parameter.default
    return parameter.name, kind, format_duration(default) if isinstance(default, timedelta) else default


def bounds_of(declared: Declared) -> tuple[Bound, ...]:
    """Return the parameters of a verb that have bounds."""
    positions = [
        name
        for name, parameter in inspect.signature(declared.function).parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    return tuple(
        Bound(
            parameter.name,
            parameter.wire_name,
            parameter.annotation,
            positions.index(parameter.name) if parameter.name in positions else None,
            step("$", parameter.wire_name) if parameter.place is Place.BODY else None,
        )
        for parameter in request_of(declared).parameters.values()
        if has_bounds(parameter.annotation)
    )


def has_place(request: Request, place: Place) -> bool:
    """Return whether a parameter has this place."""
    return any(parameter.place is place for parameter in request.parameters.values())


def _lists(declared: Declared, returns: Any) -> bool:
    whole = declared.verb.answer is not None and declared.verb.answer.whole
    return get_origin(returns) in (Sequence, list) and not whole


def item_of(returns: Any) -> Any:
    """Return the type of the items of a list."""
    (item,) = get_args(returns)
    return item


def given(shape: msgspec.Struct | None) -> dict[str, Any]:
    """Return the fields that a query or body contains, by their Python names."""
    if shape is None:
        return {}
    return {name: value for name, value in msgspec.structs.asdict(shape).items() if value is not UNSET}
