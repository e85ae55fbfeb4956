"""Answers: values of the model as JSON, in which durations are written as people write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
from starlette.responses import Response

from rota.durations import format_duration


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def page(items: Sequence[object], next_cursor: str | None = None) -> dict[str, object]:
    return {"items": items, "next_cursor": next_cursor}


def worded(value: object) -> Any:
    """Plain values, with `"90s"` for a timedelta, where msgspec alone would write `"PT90S"`."""
    return _with_words(msgspec.to_builtins(value, builtin_types=(timedelta,)))


def _with_words(value: Any) -> Any:
    match value:
        case timedelta():
            return format_duration(value)
        case dict():
            return {name: _with_words(item) for name, item in value.items()}
        case list() | tuple():
            return [_with_words(item) for item in value]
        case _:
            return value
