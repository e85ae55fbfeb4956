"""Placeholders in the texts of a data job, filled from its run: `{payload.name}`, `{plan_time}`, `{run_id}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from rota.errors import Invalid, did_you_mean

WORDS = ("payload", "plan_time", "scope.kind", "scope.id", "run_id", "attempt", "idempotency_key")
_PLACE = re.compile(r"\{((?:payload|plan|scope|run|attempt|idempotency)[A-Za-z0-9_.-]*)\}")

Facts = Mapping[str, Any]
"""Value of each word; that of `payload` is the whole payload."""


def places_in(value: Any, place: re.Pattern[str] = _PLACE) -> Iterator[str]:
    """Yield the placeholders in all texts of a JSON value; other braces are plain text."""
    if isinstance(value, str):
        yield from place.findall(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from places_in(item, place)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from places_in(key, place)
            yield from places_in(item, place)


def check_places(value: Any, where: str) -> bool:
    """Return whether there are placeholders. One that is misspelled is refused."""
    words = list(places_in(value))
    for word in words:
        if word not in WORDS and not word.startswith("payload."):
            raise Invalid(f"{where} has the unknown placeholder {{{word}}}", hint=did_you_mean(word, WORDS))
    return bool(words)


def payload_names(*values: Any, place: re.Pattern[str] = _PLACE) -> list[str]:
    """Return the fields that a payload must have to fill all placeholders."""
    words = {word for value in values for word in places_in(value, place)}
    return sorted({word.split(".")[1] for word in words if word.startswith("payload.")})


def filled_text(text: str, facts: Facts, put: Callable[[str], str] = str, place: re.Pattern[str] = _PLACE) -> str:
    """Fill the placeholders of a text; `put` escapes each value for its place."""
    return place.sub(lambda match: put(_written(_value(match.group(1), facts))), text)


def filled_json(value: Any, facts: Facts, place: re.Pattern[str] = _PLACE) -> Any:
    """Fill a JSON value. A text that is one placeholder and nothing else becomes the value itself, not its text."""
    if isinstance(value, str):
        whole = place.fullmatch(value)
        return _value(whole.group(1), facts) if whole else filled_text(value, facts, place=place)
    if isinstance(value, list | tuple):
        return [filled_json(item, facts, place) for item in value]
    if isinstance(value, dict):
        return {filled_text(key, facts, place=place): filled_json(item, facts, place) for key, item in value.items()}
    return value


def for_url(value: str) -> str:
    """Percent-encode a value. One of dots alone would change the path, cannot be encoded, and is refused."""
    if value and not value.strip("."):
        raise Invalid(f"{value!r} would change the path of the URL")
    return quote(value, safe="")


def _value(word: str, facts: Facts) -> Any:
    if word in facts:
        return facts[word]
    root, *path = word.split(".")
    value = facts[root]
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            whose = "the payload has" if root == "payload" else "the results of the steps have"
            raise Invalid(f"{{{word}}} cannot be filled: {whose} no {name!r} there")
        value = value[name]
    return value


def _written(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
