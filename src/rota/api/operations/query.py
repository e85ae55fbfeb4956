"""Query parameters as a typed shape: unknown and repeated parameters are refused."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from starlette.requests import Request

from rota.errors import Invalid, UnknownOption, did_you_mean
from rota.values.names import LONGEST_NAME, checked_name
from rota.verbs.parameters import without_bounds

Q = TypeVar("Q", bound=msgspec.Struct)

Instant = Annotated[datetime, msgspec.Meta(tz=True, description="A time with a zone: 2026-01-31T08:00:00Z")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=500, description="Maximum number of items")]
Cursor = Annotated[str, msgspec.Meta(max_length=2_000, description="`next_cursor` of the previous page")]

_KEY = "rota.query"
_NUMBER = re.compile(r"[-+.\deE_]+", re.ASCII)


class NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters."""


class Page(msgspec.Struct, kw_only=True):
    """Page of a list. `cursor` is `next_cursor` of the previous page."""

    limit: Limit = 50
    cursor: Cursor | None = None


class OwnerQuery(msgspec.Struct):
    """`owner` is the owner of what is created."""

    owner: str = "api"


def check_query(request: Request, shape: type[msgspec.Struct]) -> None:
    """Parse and check the query, even if the operation does not use it; `checked_query` returns it."""
    request.scope[_KEY] = query_of(request, shape) if request.scope["query_string"] else _empty(shape)


def checked_query(request: Request, shape: type[Q]) -> Q:
    """Return the query that `check_query` has parsed."""
    query: Q = request.scope[_KEY]
    assert isinstance(query, without_bounds(shape))
    return query


@cache
def _empty(shape: type[Q]) -> Q:
    return _converted({}, shape)


def query_of(request: Request, shape: type[Q]) -> Q:
    """Parse the query parameters; refuse unknown ones, and repeated ones unless the parameter is a list."""
    kinds = _kinds(shape)
    parameters: dict[str, Any] = {}
    for name in request.query_params:
        within, dot, part = name.partition(".")
        if dot and within in _open(shape):
            parameters.setdefault(within, {})[part] = _value_within(request, name)
            continue
        if name not in kinds:
            names = (*kinds, *(f"{open_name}.name" for open_name in _open(shape)))
            raise UnknownOption(name[:100], names, where=f"{request.method} {request.url.path}")
        values = [_checked(value, name, _longer(shape)) for value in request.query_params.getlist(name)]
        if not kinds[name] and len(values) > 1:
            raise Invalid(f"{name} is given {len(values)} times", hint="give it once")
        parameters[name] = values if kinds[name] else values[0]
    for name in _instants(shape) & parameters.keys():
        if _NUMBER.fullmatch(parameters[name]):  # msgspec would read it as seconds since 1970
            raise _refusal(f"Expected a time with a timezone - at `$.{name}`", parameters, shape)
    return _converted(parameters, shape)


def _converted(parameters: dict[str, Any], shape: type[Q]) -> Q:
    try:
        return msgspec.convert(parameters, without_bounds(shape), strict=False)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), parameters, shape) from None


def _value_within(request: Request, name: str) -> str:
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise Invalid(f"{name:.100} is given {len(values)} times", hint="give it once")
    return values[0]


def _checked(value: str, name: str, longer: Mapping[str, int]) -> str:
    """Check a text as a name, unless its parameter declares its own maximum length."""
    if name not in longer:
        return checked_name(value, name)
    for start in range(0, len(value[: longer[name]]), LONGEST_NAME):
        checked_name(value[start : start + LONGEST_NAME], name)
    return value


@cache
def _longer(shape: type[msgspec.Struct]) -> dict[str, int]:
    properties = msgspec.json.schema_components([shape])[1][shape.__name__].get("properties", {})
    sizes = {name: max_length_of(schema) for name, schema in properties.items()}
    return {name: size for name, size in sizes.items() if size is not None}


def max_length_of(schema: Mapping[str, Any]) -> int | None:
    """Return the maximum length of a text, or of an optional text."""
    sizes = [part["maxLength"] for part in schema.get("anyOf", [schema]) if "maxLength" in part]
    return sizes[0] if sizes else None


@cache
def _kinds(shape: type[msgspec.Struct]) -> dict[str, bool]:
    """Map external names of parameters to whether they may be repeated."""
    hints = get_type_hints(shape, include_extras=False)
    fields = msgspec.structs.fields(shape)
    return {field.encode_name: _is_list(hints[field.name]) for field in fields if not _is_open(hints[field.name])}


@cache
def _open(shape: type[msgspec.Struct]) -> frozenset[str]:
    """Return parameters whose second part the caller chooses: `payload.url=…`."""
    hints = get_type_hints(shape, include_extras=False)
    return frozenset(field.encode_name for field in msgspec.structs.fields(shape) if _is_open(hints[field.name]))


def _is_open(hint: Any) -> bool:
    return get_origin(hint) is dict


@cache
def _instants(shape: type[msgspec.Struct]) -> frozenset[str]:
    hints = get_type_hints(shape, include_extras=False)
    fields = msgspec.structs.fields(shape)
    return frozenset(
        field.encode_name for field in fields if datetime in (hints[field.name], *get_args(hints[field.name]))
    )


@cache
def _words(shape: type[msgspec.Struct]) -> dict[str, list[str]]:
    """Return the words that a parameter may be, or a list of which it may be, for those that are an enumeration."""
    words: dict[str, list[str]] = {}
    for field in msgspec.structs.fields(shape):
        for kind in _leaves(field.type):
            if isinstance(kind, type) and issubclass(kind, Enum):
                words[field.encode_name] = [member.value for member in kind]
    return words


def _leaves(hint: Any) -> list[Any]:
    return [leaf for part in get_args(hint) for leaf in _leaves(part)] if get_args(hint) else [hint]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_list(hint: Any) -> bool:
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return any(get_origin(part) in (list, tuple) for part in parts)


def _refusal(message: str, parameters: dict[str, Any], shape: type[msgspec.Struct]) -> Invalid:
    """Build the error from msgspec's message, which names the place after a `$`."""
    problem, _, place = message.rpartition(" - at `$.")
    name = place.rstrip("`").partition("[")[0]
    if not problem:
        return Invalid(message)
    value = parameters.get(name)
    hint = problem
    if words := _words(shape).get(name):
        value = next((text for text in _listed(value) if text not in words), value)
        hint = did_you_mean(str(value), words) or problem
    elif "RFC3339" in problem or "timezone" in problem:
        hint = "write a time with a zone: 2026-01-31T08:00:00Z"
    return Invalid(f"{name} cannot be {value!r:.80}", hint=hint)
