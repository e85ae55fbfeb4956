"""Writer of schedule documents as TOML, for `rota schedule apply`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def schedules_toml(owner: str | None, documents: Iterable[Mapping[str, Any]], remarks: Iterable[str] = ()) -> str:
    """Write documents as TOML; `remarks` become comments at the top."""
    lines = [f"# {_one_line(remark)}" for remark in remarks]
    lines += [f"owner = {_value(owner)}"] if owner is not None else []
    for document in documents:
        lines += ["", "[[schedule]]"]
        lines += [f"{_key(key)} = {_value(_without_null(value))}" for key, value in document.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def _without_null(value: Any) -> Any:
    """Write a table that contains null as JSON in a text: TOML has no null."""
    return json.dumps(value, ensure_ascii=False) if _has_null(value) else value


def _has_null(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_null, value.values()))
    return value is None or (isinstance(value, list | tuple) and any(map(_has_null, value)))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
