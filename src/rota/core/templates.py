"""Payload templates: `{plan_time}`, `{schedule}`, `{scope.kind}` and `{scope.id}` inside the texts of a payload."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC
from typing import Any

from rota.core.scope import Scope
from rota.errors import Invalid, did_you_mean
from rota.instants import instant

WORDS = ("plan_time", "schedule", "scope.kind", "scope.id")
_PLACE = re.compile(r"\{((?:plan|scope|schedule)[a-z_.]*)\}")


def check_template(payload: Any) -> bool:
    """Whether it has any place to fill; a word that is almost one of ours is a mistake, other braces are text."""
    found = False

    def look(text: str) -> str:
        nonlocal found
        for word in _PLACE.findall(text):
            if word not in WORDS:
                raise Invalid(f"the payload has {{{word}}}, which nothing fills", hint=did_you_mean(word, WORDS))
            found = True
        return text

    _walk(payload, look)
    return found


def filled(payload: Any, schedule: str, scope: Scope, plan_time: int) -> Any:
    """`plan_time` in microseconds; it is written in RFC 3339, UTC."""
    values = {
        "plan_time": instant(plan_time).astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "schedule": schedule,
        "scope.kind": scope.kind,
        "scope.id": scope.id,
    }
    return _walk(payload, lambda text: _PLACE.sub(lambda match: values[match.group(1)], text))


def _walk(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_walk(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _walk(item, change) for key, item in value.items()}
    return value
