"""Types of payloads and results that msgspec does not know: paths, pydantic's, and those that an app registers."""

from __future__ import annotations

import dataclasses
import importlib
import sys
import typing
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, get_args, get_origin

import msgspec

from rota.errors import Invalid
from rota.values import json
from rota.values.json import WITHIN, first_refusal

_CONSTRAINTS = ("pydantic", "pydantic_core", "annotated_types")
"""Packages whose annotations constrain values; only pydantic enforces them."""


class _StandsForAny(type):
    """msgspec checks the class of what `read_custom` returns; pydantic has checked it already."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class ReadByPydantic(metaclass=_StandsForAny):
    """Base of stand-ins for annotations that pydantic reads. msgspec asks `read_custom` for them."""

    adapter: Any


class _Custom(msgspec.Struct, frozen=True):
    read: Callable[[Any], Any]
    schema: dict[str, Any]


_customs: dict[type, _Custom] = {}


def register(
    kind: type, write: Callable[[Any], Any], read: Callable[[Any], Any], schema: dict[str, Any] | None = None
) -> None:
    """Register a type for this process: `write` returns what JSON can hold, `read` makes the value of it again."""
    if not isinstance(kind, type) or not callable(write) or not callable(read):
        raise Invalid(
            "a payload type needs a class, write and read", hint="app.payload_type(Money, write=str, read=Money)"
        )
    if not isinstance(msgspec.inspect.type_info(kind), msgspec.inspect.CustomType) or _is_pydantic(kind):
        raise Invalid(f"rota reads and writes {kind.__qualname__} by itself", hint="leave the registration out")
    _customs[kind] = _Custom(read, schema or {"description": kind.__qualname__})
    json.write_as(kind, write)


def readable(annotation: Any) -> Any:
    """Return the annotation as msgspec can read it: with a stand-in, if pydantic must.

    A constraint that nobody would enforce is refused.
    """
    parts = list(_parts(annotation, set()))
    constrained = any(_of_pydantic(note) for note in parts) or any(_is_pydantic(part) for part in parts)
    if not constrained:
        return annotation
    if any(isinstance(part, msgspec.Meta) or _is_struct(part) for part in parts):
        raise Invalid(
            "msgspec's types and constraints cannot be mixed with pydantic's", hint="use those of one of them"
        )
    return _by_pydantic(annotation)


def read_custom(kind: type, value: Any) -> Any:
    """Make a value of a type that msgspec does not know; what it raises gets the path to the value."""
    if issubclass(kind, ReadByPydantic):
        return _read_by(partial(_validated, kind.adapter), value)
    if kind in _customs:
        return _read_by(_customs[kind].read, value)
    if kind is object:  # as msgspec does without a hook
        return value
    if issubclass(kind, PurePath):
        if isinstance(value, str):
            return kind(value)
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
    raise NotImplementedError(f"{kind.__qualname__} cannot be read from JSON")


def _read_by(read: Callable[[Any], Any], value: Any) -> Any:
    """Read a value by the application's code. All that it raises is about the value; msgspec takes two errors so."""
    try:
        return read(value)
    except (ValueError, TypeError):
        raise
    except Exception as failure:
        raise ValueError(problem_of(failure)) from failure


def problem_of(failure: Exception) -> str:
    """Return a problem that names the error's type, without which a `KeyError` says little."""
    return f"cannot be read: {type(failure).__name__}: {failure}".removesuffix(": ")


def schema_of(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of a type that msgspec does not know."""
    if issubclass(kind, ReadByPydantic):
        schema: dict[str, Any] = kind.adapter.json_schema(ref_template="#/$defs/{model}")
        return schema
    if kind in _customs:
        return dict(_customs[kind].schema)
    if issubclass(kind, PurePath):
        return {"type": "string", "format": "path"}
    if kind is object:
        return {"description": "any JSON value"}
    raise NotImplementedError


def hoisted(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose `$defs`, wherever pydantic put them, are at its root, where references look for them."""
    definitions: dict[str, Any] = {}

    def without(node: Any) -> Any:
        if isinstance(node, list):
            return [without(item) for item in node]
        if not isinstance(node, dict):
            return node
        for name, definition in node.get("$defs", {}).items() if isinstance(node.get("$defs"), dict) else ():
            plain = without(definition)
            if definitions.setdefault(name, plain) != plain:
                raise Invalid(f"two types of the payload are called {name!r}", hint="rename one of them")
        return {key: without(item) for key, item in node.items() if key != "$defs"}

    root: dict[str, Any] = without(schema)
    return {**root, "$defs": definitions} if definitions else root


def _by_pydantic(annotation: Any) -> Any:
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        raise Invalid(
            "constraints of annotated_types are enforced by pydantic, which is not installed",
            hint="install pydantic, or use msgspec.Meta",
        ) from None
    adapter = pydantic.TypeAdapter(annotation)
    adapter.json_schema()  # raises here, not at the first payload, if there is none
    stand_in: Any = _StandsForAny("ReadByPydantic", (ReadByPydantic,), {"adapter": adapter})
    return stand_in


def _validated(adapter: Any, value: Any) -> Any:
    """Validate as pydantic does JSON: a text may be a date, but not a number."""
    errors: Any = sys.modules["pydantic"].ValidationError
    try:
        return adapter.validate_json(msgspec.json.encode(value), strict=None)
    except errors as failure:
        place, problem = first_refusal(failure) or ("", str(failure))
        raise ValueError(f"{place}{WITHIN}{problem}" if place else problem) from None


def _is_pydantic(part: Any) -> bool:
    return isinstance(part, type) and hasattr(part, "__pydantic_core_schema__")


def _of_pydantic(note: Any) -> bool:
    return type(note).__module__.partition(".")[0] in _CONSTRAINTS and not isinstance(note, type)


def _is_struct(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, msgspec.Struct)


def _parts(annotation: Any, seen: set[int]) -> Iterator[Any]:
    """Yield every type and every note of `Annotated` in an annotation, and in the fields of the classes it names."""
    if id(annotation) in seen:
        return
    seen.add(id(annotation))
    if get_origin(annotation) is Annotated:
        kind, *notes = get_args(annotation)
        yield from notes
        yield from _parts(kind, seen)
        return
    for argument in get_args(annotation):
        yield from _parts(argument, seen)
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type):
        yield kind
        for field in _fields(kind):
            yield from _parts(field, seen)


def _fields(kind: type) -> list[Any]:
    described = dataclasses.is_dataclass(kind) or typing.is_typeddict(kind) or hasattr(kind, "__attrs_attrs__")
    if not (described or _is_struct(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))):
        return []
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except Exception:  # resolving evaluates any text; msgspec says what it cannot resolve
        return []
