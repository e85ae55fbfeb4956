"""Answers: values of the model as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from starlette.responses import Response


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def page(items: Sequence[object], next_cursor: str | None = None) -> dict[str, object]:
    return {"items": items, "next_cursor": next_cursor}
