"""Values in payloads that a search compares: their paths and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.errors import Invalid
from rota.values.names import checked_name

Scalar = str | int | float | bool | None

LONGEST_VALUE = 2_000
_MOST_VALUES = 10
_DEEPEST = 8
_UNSEARCHABLE = '"\\'


def checked_values(payload: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Return the text of each value by its path: `{"a.b": 5}` means 5 at b of a. Dots always separate names."""
    if len(payload) > _MOST_VALUES:
        raise Invalid(f"a search takes at most {_MOST_VALUES} payload values")
    return {_path(name): scalar_text(value, name) for name, value in payload.items()}


def _path(name: str) -> tuple[str, ...]:
    keys = tuple(name.split("."))
    if len(keys) > _DEEPEST:
        raise Invalid(f"payload.{name:.80} is deeper than {_DEEPEST} names")
    for key in keys:
        checked_name(key, f"a name in payload.{name:.80}")
        if any(sign in key for sign in _UNSEARCHABLE):
            raise Invalid(f"payload.{name:.80} contains a quote or a backslash, and cannot be searched for")
    return keys


def scalar_text(value: Any, name: str) -> str:
    """Return a text as it is, and any other scalar as JSON."""
    if isinstance(value, str):
        if len(value) > LONGEST_VALUE or "\x00" in value or not _is_text(value):
            raise Invalid(f"the value of payload.{name:.80} must be text of up to {LONGEST_VALUE} characters")
        return value
    if value is None or isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    raise Invalid(f"payload.{name:.80} must be compared with a text, a number, true, false or null: not {value!r:.80}")


def _is_text(value: str) -> bool:
    return value.isprintable() or not any(0xD800 <= ord(sign) < 0xE000 for sign in value)
