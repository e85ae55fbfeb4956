"""Encode and decode JSON within limits; errors name the path to the value that cannot be stored."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import msgspec

from rota.errors import BadPayload, did_you_mean

Json = Any
"""JSON value that enters or leaves the process."""


_writers: dict[type, Callable[[Any], Any]] = {}


def write_as(kind: type, write: Callable[[Any], Any]) -> None:
    """Let values of a class be written as what `write` makes of them."""
    _writers[kind] = write


def _plain(value: Any) -> Any:
    """Return what stands for a value that msgspec does not know."""
    kind = type(value)
    for base in kind.__mro__:
        if base in _writers:
            return _writers[base](value)
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(kind, "__pydantic_validator__"):
        dumped = value.model_dump(mode="json", by_alias=True, round_trip=True)
        if kind.model_validate_json(_to_json(dumped)) != value:
            raise TypeError(f"a {kind.__qualname__} is another one after JSON, as secrets are")
        return dumped
    raise TypeError(f"type {kind.__qualname__} cannot be stored as JSON")


_to_json = msgspec.json.Encoder(enc_hook=_plain).encode
_from_json = msgspec.json.Decoder().decode

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
_UNWRITABLE = (*UNREADABLE, TypeError, ValueError, OverflowError)

WITHIN = "\x1f"
"""Separates the place of a problem from the problem, in what a hook of msgspec raises."""
_PLACED = re.compile(r"(.*?)(?: - at (?:`key` in )?`(\$.*)`)?", re.DOTALL)
_FIELD = re.compile(r"Object (missing|contains unknown) (?:required )?field `(.*)`", re.DOTALL)
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))


@dataclass(frozen=True, slots=True)
class Limits:
    max_bytes: int = 262_144
    max_depth: int = 64


def encode(value: object, limits: Limits) -> str:
    """Return JSON text that `decode` accepts; values that JSON would silently change or drop are refused."""
    try:
        raw = _to_json(value)
        _check_size(raw, limits)
        # Cheap check for plain values. If they differ (NaN became null, but a date became text), inspect each value.
        faithful = _from_json(raw) == value
    except _UNWRITABLE as failure:
        _inspect(value, "$", limits.max_depth)
        raise BadPayload("$", f"cannot be stored as JSON: {failure}") from failure
    if not faithful or _is_doubtful(raw, limits):
        _inspect(value, "$", limits.max_depth)
    return raw.decode()


def decode(text: str | bytes, limits: Limits) -> object:
    """Decode JSON from outside; the last of duplicate keys counts."""
    try:
        raw = text.encode() if isinstance(text, str) else text
        _check_size(raw, limits)
        value = _from_json(raw)
    except UNREADABLE as failure:
        raise unreadable(failure) from None
    if _is_doubtful(raw, limits):
        _inspect(value, "$", limits.max_depth)
    return value


def unreadable(failure: Exception, known: Iterable[str] = ()) -> BadPayload:
    """Convert an msgspec decoding failure into a `BadPayload` with a path; `known` are the fields at the top level."""
    if isinstance(failure, RecursionError):
        return BadPayload("$", "is nested too deeply")
    if not isinstance(failure, msgspec.ValidationError):
        return BadPayload("$", f"is not JSON: {failure}")
    placed = _PLACED.fullmatch(str(failure))
    problem, path = (placed[1], placed[2] or "$") if placed else (str(failure), "$")
    inner, separator, rest = problem.partition(WITHIN)
    if separator:  # a place inside of a value that msgspec does not know
        problem, path = rest, path + inner
    if not (field := _FIELD.fullmatch(problem)):
        return BadPayload(path, _shortened(problem[:1].lower() + problem[1:], 300))
    if field[1] == "missing":
        return BadPayload(step(path, field[2]), "is missing")
    return BadPayload(step(path, field[2]), "is unexpected", hint=did_you_mean(field[2], known if path == "$" else ()))


def first_refusal(failure: Exception) -> tuple[str, str] | None:
    """Return where in the value pydantic found the first problem (`.lines[0].quantity`), and which; None if the failure
    is not pydantic's."""
    if type(failure).__module__.partition(".")[0] != "pydantic_core" or not hasattr(failure, "errors"):
        return None
    first = failure.errors(include_url=False, include_input=False)[0]
    path = "$"
    for key in first["loc"]:
        path = step(path, key)
    problem = str(first["msg"])
    return path[1:], problem[:1].lower() + problem[1:]


def step(path: str, key: str | int) -> str:
    """Return `path` extended by one level: `$.name`, `$[3]`, `$['not a name']`; printable whatever the key."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    short = _shortened(key, 80)
    return f"{path}.{key}" if short.isidentifier() else f"{path}[{short!a}]"


def _shortened(text: str, size: int) -> str:
    """Cut `text` to `size` characters: messages quote input from outside, which may be long."""
    return text if len(text) <= size else f"{text[: size - 1]}…"


def _check_size(raw: bytes, limits: Limits) -> None:
    if len(raw) > limits.max_bytes:
        raise BadPayload(
            "$",
            f"is {len(raw)} bytes of JSON, the limit is {limits.max_bytes}",
            hint="store the data elsewhere, and pass a reference to it",
        )


def _is_doubtful(raw: bytes, limits: Limits) -> bool:
    # A short text has not so many brackets: most payloads are short.
    return b"\\u0000" in raw or (len(raw) > limits.max_depth and _is_too_deep(raw, limits.max_depth))


def _is_too_deep(raw: bytes, max_depth: int) -> bool:
    """Return whether the nesting exceeds `max_depth`.

    Removes innermost pairs of brackets level by level, which is far cheaper than a walk in Python.
    """
    if raw.count(b"[") + raw.count(b"{") <= max_depth:
        return False
    outside_strings = raw.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2]
    brackets = b"".join(outside_strings).translate(_SQUARE, _NO_BRACKET)
    for _ in range(max_depth):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _inspect(value: object, path: str, room: int) -> None:
    """Raise at the first value that JSON cannot represent; `room` is how many more levels are allowed."""
    if type(value) is str:
        _inspect_text(value, path)
    elif type(value) is float:
        if not math.isfinite(value):
            raise BadPayload(path, f"JSON has no number {value}", hint="use None or a string")
    elif (parts := _parts(value, path)) is None:
        _inspect_leaf(value, path, room)
    elif room == 0:
        raise BadPayload(path, "is nested too deeply", hint="make it flatter, or store it elsewhere")
    else:
        for where, part in parts:
            _inspect(part, where, room - 1)


def _inspect_text(text: str, path: str) -> None:
    if "\0" in text:
        raise BadPayload(path, "contains a NUL character", hint="encode binary data, for example as base64")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadPayload(path, "contains an unpaired surrogate") from None


def _inspect_leaf(value: object, path: str, room: int) -> None:
    try:
        plain = _from_json(_to_json(value))
    except TypeError as failure:
        known = hasattr(type(value), "__pydantic_validator__") or type(value) in _writers
        problem = str(failure) if known else f"type {type(value).__qualname__} cannot be stored as JSON"
        hint = "pass plain values, dataclasses, msgspec structs or pydantic models; app.payload_type(…) adds a type"
        raise BadPayload(path, problem, hint=hint) from None
    except _UNWRITABLE as failure:
        if (refusal := first_refusal(failure)) is not None:
            raise BadPayload(path + refusal[0], refusal[1]) from None
        raise BadPayload(path, f"cannot be stored as JSON: {failure}") from None
    if type(plain) is not type(value):
        _inspect(plain, path, room)


def _parts(value: object, path: str) -> Iterator[tuple[str, object]] | None:
    """Yield the members of `value`, each with its path; None if it is not a container."""
    if isinstance(value, dict):
        return _entries(value, path)
    if isinstance(value, list | tuple | set | frozenset):
        return ((f"{path}[{index}]", item) for index, item in enumerate(value))
    fields = _fields(type(value))
    return None if fields is None else _attributes(value, fields, path)


def _entries(value: dict[object, object], path: str) -> Iterator[tuple[str, object]]:
    names = [key if type(key) is str else _key_text(key, path) for key in value]
    if len(set(names)) < len(names):
        raise BadPayload(path, "two keys become the same string", hint="JSON keys are strings")
    for name, item in zip(names, value.values(), strict=True):
        where = step(path, name)
        _inspect_text(name, where)
        yield where, item


def _key_text(key: object, path: str) -> str:
    if isinstance(key, float) and not math.isfinite(key):
        raise BadPayload(path, f"JSON has no number {key} for a key", hint="use a string")
    try:
        return str(*msgspec.to_builtins({key: None}, str_keys=True))
    except _UNWRITABLE:
        raise BadPayload(path, f"type {type(key).__qualname__} cannot be a key", hint="JSON keys are strings") from None


def _fields(kind: type) -> dict[str, str] | None:
    """Map attributes to their names in JSON, for structs, dataclasses and attrs classes."""
    if issubclass(kind, msgspec.Struct):
        return dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    if (declared := getattr(kind, "__dataclass_fields__", None)) is not None:
        return {name: name for name in declared}
    if (declared := getattr(kind, "__attrs_attrs__", None)) is not None:
        return {attribute.name: attribute.name for attribute in declared}
    return None


def _attributes(value: object, fields: dict[str, str], path: str) -> Iterator[tuple[str, object]]:
    for attribute, name in fields.items():
        item = getattr(value, attribute, msgspec.UNSET)
        if item is not msgspec.UNSET:
            yield step(path, name), item
