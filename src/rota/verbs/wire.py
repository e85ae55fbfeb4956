"""Form of values in JSON and URLs: durations are texts (`"90s"`), instants RFC 3339, scopes `kind/id`.

`wire_type` turns the annotation of a parameter into the type that a request has, `encode` a value into it, `decode`
back. `Answer` is the form of what a verb returns.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from rota.core.calendar.notation import written_instant
from rota.core.runs.options import scope_of
from rota.errors import Invalid
from rota.values.durations import format_duration, parse_duration, worded
from rota.values.instants import zoned
from rota.values.scope import Scope, scope_parts, scope_text

T = TypeVar("T")

Instant = Annotated[datetime, msgspec.Meta(tz=True, description="A time with a zone: 2026-01-31T08:00:00Z")]
_LISTS = (Sequence, Iterable, list, tuple, set, frozenset)
_TEXTS = (str, timedelta)
_DURATION = frozenset({str, timedelta, types.NoneType})


class Wired(msgspec.Struct, frozen=True):
    """Form of one parameter, where its type alone does not tell it: `Annotated[RateOption, Wired(str, rate_text)]`.

    `absent` is how None is written.
    """

    type: Any
    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None
    absent: Any = None


class Answer(msgspec.Struct, frozen=True):
    """Form of what a verb returns, where its type alone does not tell it: `shape` describes it in OpenAPI.

    `is_page`: it is a page of items of this shape, with a `next_cursor`. Of a list, it is the form of each item, unless
    it is that of the `whole`.
    """

    shape: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    is_page: bool = False
    whole: bool = False


class Body(msgspec.Struct, frozen=True):
    """Form of a whole body, where it is not an object with a field for each parameter; `shape` describes it in OpenAPI.

    `encode` makes it from its own arguments, by name, and those that the path names. `decode` returns its arguments
    from the body, which is converted if its shape is a struct, and from those that the path names. `translate` puts
    other words that callers may use into those of the shape; it takes the body, or the arguments. `others`: fields that
    the shape does not have are options, and the method itself refuses those that it does not know.
    """

    shape: Any
    encode: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
    decode: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
    translate: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    others: bool = False


def answer_field(field: str, kind: Any, name: str, description: str) -> Answer:
    """Return the form of a bare value, which JSON holds in one field: `{"now": …}`. `name` is that of the shape."""
    shape = msgspec.defstruct(name, [(field, Annotated[kind, msgspec.Meta(description=description)])])
    shape.__doc__ = f"{description}."
    return Answer(shape, lambda value: {field: value}, lambda plain: answer_in(plain[field], kind), whole=True)


def wire_type(annotation: Any) -> Any:
    """Return the type of a value in a request: what JSON can hold, for each type that a parameter may have."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        wired = wired_in(annotation)
        metadata = [part for part in annotation.__metadata__ if part is not wired]
        kind = wire_type(parts[0]) if wired is None else wired.type
        return Annotated[(kind, *metadata)] if metadata else kind
    if origin in (Union, types.UnionType):
        return _union(parts)
    if origin in _LISTS:
        items = [part for part in parts if part is not Ellipsis]
        return list[wire_type(items[0])]  # type: ignore[misc]  # a type made at run time
    if origin is Mapping:
        return dict[parts[0], wire_type(parts[1])]  # type: ignore[valid-type,misc]
    if annotation is timedelta or annotation is Scope:
        return str
    if annotation is datetime:
        return Instant
    return annotation


def _union(parts: tuple[Any, ...]) -> Any:
    """Return the union's type in a request: one text for all that is written as text."""
    scoped = Scope in parts
    members: list[Any] = []
    for part in parts:
        if scoped and get_origin(part) is tuple:  # a pair (kind, id), which is written as a scope
            continue
        member = wire_type(part)
        if _is_text(part) and any(_is_text(other) and other is not part for other in parts):
            member = str
        if member not in members:
            members.append(member)
    return Union[tuple(members)]  # noqa: UP007  # of a variable number of types


def _is_text(part: Any) -> bool:
    return part in (*_TEXTS, datetime) or (isinstance(part, type) and issubclass(part, Enum))


def encode(value: Any, annotation: Any, name: str) -> Any:
    """Return a parameter's value as JSON. An error names the parameter.

    Texts are sent as they are: the verb itself refuses wrong ones, with the same words at every door.
    """
    wired = wired_in(annotation)
    if value is None:
        return None if wired is None else wired.absent
    if wired is not None and wired.encode is not None:
        return wired.encode(value)
    kinds = members_of(annotation)
    if Scope in kinds and isinstance(value, Scope | tuple):
        return scope_text(scope_of(value))
    if isinstance(value, timedelta) or (_is_duration(kinds) and not isinstance(value, str)):
        return format_duration(parse_duration(value, name))
    return _plain(value, name)


def _is_duration(kinds: tuple[Any, ...]) -> bool:
    return timedelta in kinds and _DURATION.issuperset(kinds)


def _plain(value: Any, name: str) -> Any:
    match value:
        case datetime():
            return written_instant(zoned(value, name))
        case timedelta():
            return format_duration(value)
        case Mapping():
            return {key: _plain(item, name) for key, item in value.items()}
        case str() | bytes() | msgspec.Struct() | Enum():
            return value
        case list() | tuple() | set() | frozenset():
            return [_plain(item, name) for item in value]
        case _:
            return value


def decode(value: Any, annotation: Any, name: str) -> Any:
    """Return a parameter's value as the client's method takes it."""
    decoder = decoder_of(annotation, name)
    return value if decoder is None or value is None else decoder(value)


def decoder_of(annotation: Any, name: str) -> Callable[[Any], Any] | None:
    """Return how a parameter's value is decoded; None: it stays as it is."""
    wired = wired_in(annotation)
    if wired is not None and wired.decode is not None:
        return wired.decode
    kinds = members_of(annotation)
    if Scope in kinds:
        return lambda value: scope_in(value, name) if isinstance(value, str) else value
    if datetime in kinds and timedelta in kinds:
        return lambda value: _instant_or_duration(value, name) if isinstance(value, str) else value
    if {get_origin(kind) for kind in kinds} & {*_LISTS} == {tuple}:
        return lambda value: tuple(value) if isinstance(value, list) else value
    return None


def scope_in(text: str, name: str = "scope") -> Scope:
    """Parse `kind/id`; a slash within the kind is `%2F`."""
    kind, id = scope_parts(text)
    if id is None:
        raise Invalid(f"{name} cannot be {text!r:.80}", hint="write kind/id, for example account/42")
    return scope_of((kind, id))


def _instant_or_duration(text: str, name: str) -> datetime | str:
    if not (text[:4].isdigit() and "T" in text):
        return text
    try:
        at: datetime = msgspec.convert(text, Instant)
    except msgspec.ValidationError:
        raise Invalid(f"{name} cannot be {text!r:.80}", hint="a time with a zone, or a duration") from None
    return at


def wired_in(annotation: Any) -> Wired | None:
    """Return the form that an annotation declares, or None."""
    metadata = getattr(annotation, "__metadata__", ())
    return next((part for part in metadata if isinstance(part, Wired)), None)


def members_of(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type that an annotation names."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return members_of(get_args(annotation)[0])
    return get_args(annotation) if origin in (Union, types.UnionType) else (annotation,)


def answer_in(plain: Any, kind: Any) -> Any:
    """Convert a decoded answer to the type that the verb returns: JSON alone does not tell durations from texts."""
    return msgspec.convert(_with_durations(_inspected(kind), plain), kind)


def written_answer(value: Any, kind: Any) -> Any:
    """Return an answer as JSON, with durations as texts."""
    return worded(value) if has_durations(kind) else value


@cache
def has_durations(kind: Any) -> bool:
    """Return whether values of this type may hold a timedelta."""
    return _holds_duration(_inspected(kind), frozenset())


def _holds_duration(kind: inspect.Type, seen: frozenset[type]) -> bool:
    match kind:
        case inspect.TimeDeltaType():
            return True
        case inspect.StructType():
            return kind.cls not in seen and any(_holds_duration(field.type, seen | {kind.cls}) for field in kind.fields)
        case inspect.VarTupleType() | inspect.ListType() | inspect.CollectionType():
            return _holds_duration(kind.item_type, seen)
        case inspect.TupleType():
            return any(_holds_duration(item, seen) for item in kind.item_types)
        case inspect.DictType():
            return _holds_duration(kind.value_type, seen)
        case inspect.UnionType():
            return any(_holds_duration(member, seen) for member in kind.types)
        case inspect.Metadata():
            return _holds_duration(kind.type, seen)
        case _:
            return False


@cache
def _inspected(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _with_durations(kind: inspect.Type, plain: Any) -> Any:
    """Replace texts by timedeltas wherever the type has one."""
    match kind:
        case inspect.TimeDeltaType() if isinstance(plain, str):
            return parse_duration(plain)
        case inspect.StructType() if isinstance(plain, dict):
            types = {field.encode_name: field.type for field in kind.fields}
            return {name: _with_durations(types[name], item) if name in types else item for name, item in plain.items()}
        case inspect.VarTupleType() | inspect.ListType() | inspect.CollectionType() if isinstance(plain, list):
            return [_with_durations(kind.item_type, item) for item in plain]
        case inspect.TupleType() if isinstance(plain, list):
            return [_with_durations(*pair) for pair in zip(kind.item_types, plain, strict=False)]
        case inspect.DictType() if isinstance(plain, dict):
            return {name: _with_durations(kind.value_type, item) for name, item in plain.items()}
        case inspect.UnionType():
            return _with_durations(_member_of(kind.types, plain), plain)
        case inspect.Metadata():
            return _with_durations(kind.type, plain)
        case _:
            return plain


def _member_of(kinds: Sequence[inspect.Type], plain: Any) -> inspect.Type:
    """Return which type of a union the value has; structs differ by their tags."""
    for kind in kinds:
        match kind:
            case inspect.StructType() if isinstance(plain, dict):
                if kind.tag_field is None or plain.get(kind.tag_field) == kind.tag:
                    return kind
            case inspect.VarTupleType() | inspect.ListType() if isinstance(plain, list):
                return kind
            case inspect.DictType() if isinstance(plain, dict):
                return kind
            case inspect.TimeDeltaType() if isinstance(plain, str):
                return kind
    return inspect.AnyType()
