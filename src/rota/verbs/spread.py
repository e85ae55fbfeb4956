"""Structs as query parameters: each field of a filter is a parameter of its own, under its name in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from rota.verbs.wire import decode, encode, members_of, wire_type, wired_in

T = TypeVar("T", bound=msgspec.Struct)


class Field(msgspec.Struct, frozen=True):
    """Field of a struct whose fields are parameters."""

    name: str
    wire_name: str
    annotation: Any
    default: Any


def spread_type(annotation: Any) -> type[msgspec.Struct] | None:
    """Return the struct whose fields are parameters, or None if the parameter is a value of another kind."""
    if wired_in(annotation) is not None:
        return None
    return next((kind for kind in members_of(annotation) if _has_fields(kind)), None)


def _has_fields(kind: Any) -> bool:
    """Return whether it is a struct that has no form of its own in requests, as scopes do."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct) and wire_type(kind) is kind


@cache
def fields_of(kind: type[msgspec.Struct]) -> Sequence[Field]:
    """Return the fields of a struct, all of which must have a default."""
    hints = get_type_hints(kind, include_extras=True)
    empty = kind()
    return [
        Field(field.name, field.encode_name, hints[field.name], getattr(empty, field.name))
        for field in msgspec.structs.fields(kind)
    ]


def shape_fields(kind: type[msgspec.Struct]) -> list[tuple[str, Any, Any]]:
    """Return the fields as those of a request."""
    return [(field.name, wire_type(field.annotation), _default(field.default)) for field in fields_of(kind)]


def renames_of(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return the names in requests that differ from those in Python."""
    return {field.name: field.wire_name for field in fields_of(kind) if field.name != field.wire_name}


@cache
def shape_of(kind: type[msgspec.Struct], name: str) -> type[msgspec.Struct]:
    """Return the struct as a part of a body."""
    shape = msgspec.defstruct(
        name, shape_fields(kind), rename=renames_of(kind) or None, forbid_unknown_fields=True, kw_only=True
    )
    shape.__doc__ = "All conditions must hold."
    return shape


def gathered(kind: type[T], values: Mapping[str, Any]) -> T:
    """Build the struct from the values of a request, by their names in Python."""
    fields = [field for field in fields_of(kind) if field.name in values]
    return kind(**{field.name: decode(values[field.name], field.annotation, field.wire_name) for field in fields})


def spread(value: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that are not empty, as JSON, by their names in requests."""
    values = [(field, getattr(value, field.name)) for field in fields_of(type(value))]
    return {
        field.wire_name: encode(item, field.annotation, field.wire_name)
        for field, item in values
        if item != field.default
    }


def dotted(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return query parameters with the items of mappings as parameters of their own: `payload.url`."""
    flat: dict[str, Any] = {}
    for name, value in parameters.items():
        flat |= {f"{name}.{key}": item for key, item in value.items()} if isinstance(value, Mapping) else {name: value}
    return flat


def _default(value: Any) -> Any:
    return [] if value == () else value
