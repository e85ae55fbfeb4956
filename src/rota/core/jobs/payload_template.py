"""Placeholders in the payload of a schedule: `{plan_time}`, `{schedule}`, `{scope.kind}`, `{scope.id}`.

A schedule that follows another job also has `{after.run_id}`, `{after.state}` and `{after.result}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC
from typing import Any

import msgspec

from rota.errors import Invalid, did_you_mean
from rota.values.instants import instant
from rota.values.scope import Scope

WORDS = ("plan_time", "schedule", "scope.kind", "scope.id")
AFTER_WORDS = ("after.run_id", "after.state", "after.result")
_PLACE = re.compile(r"\{((?:plan|scope|schedule)[a-z_.]*)\}")
_PLACE_AFTER = re.compile(r"\{((?:plan|scope|schedule|after\.)[a-z_.]*)\}")


class AfterRun(msgspec.Struct, frozen=True):
    """Run whose end triggered the schedule, as far as payloads may name it."""

    run_id: str
    state: str
    result: Any


def check_template(payload: Any, *, after: bool = False) -> bool:
    """Return whether the payload has placeholders. One that is misspelled is refused; other braces are plain text.

    `after`: the schedule follows another job; otherwise `{after…}` is plain text, too.
    """
    has_places = False
    words, place = ((*WORDS, *AFTER_WORDS), _PLACE_AFTER) if after else (WORDS, _PLACE)

    def look(text: str) -> str:
        nonlocal has_places
        for word in place.findall(text):
            if word not in words:
                raise Invalid(f"the payload has the unknown placeholder {{{word}}}", hint=did_you_mean(word, words))
            has_places = True
        return text

    _walk(payload, look)
    return has_places


def is_open(payload: Any) -> bool:
    """Return whether some value is the whole result of the followed run, so that its type is not known."""
    has_result = False

    def look(text: str) -> str:
        nonlocal has_result
        has_result = has_result or text == "{after.result}"
        return text

    _walk(payload, look)
    return has_result


def filled(payload: Any, schedule: str, scope: Scope, plan_time: int, after: AfterRun | None = None) -> Any:
    """Fill the placeholders; `plan_time` is in µs, and is written in RFC 3339, UTC.

    A text that is one placeholder and nothing else becomes the value itself: a number stays a number. Filled values are
    not scanned for placeholders again.
    """
    values: dict[str, Any] = {
        "plan_time": instant(plan_time).astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "schedule": schedule,
        "scope.kind": scope.kind,
        "scope.id": scope.id,
    }
    place = _PLACE if after is None else _PLACE_AFTER
    if after is not None:
        values |= {"after.run_id": after.run_id, "after.state": after.state, "after.result": after.result}

    def fill(text: str) -> Any:
        whole = place.fullmatch(text)
        return values[whole.group(1)] if whole else place.sub(lambda match: _text(values[match.group(1)]), text)

    return _walk(payload, fill)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _walk(value: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_walk(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _walk(item, change) for key, item in value.items()}
    return value
