"""Looking for runs: values inside of payloads, how they are named and compared; and a page of what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from rota.core.runs.redaction import Discreet, names_secret
from rota.core.runs.run import Run, RunFilter
from rota.errors import Forbidden, Invalid
from rota.values.names import checked_name

LONGEST_VALUE = 2_000
_MOST_VALUES = 10
_DEEPEST = 8
_UNSEARCHABLE = '"\\'


class RunPage(msgspec.Struct, frozen=True):
    """`next` is the `before` of the page after it; None: there is none. A page may be short, or empty, and not be the
    last: it was looked for long enough."""

    runs: Sequence[Run]
    next: str | None


class ShownFilter(RunFilter, frozen=True, kw_only=True):
    """Of those who are not shown secrets: a run that matches only by what is hidden from them does not match. What they
    find, how many, and where the next page begins must not tell what that is."""


def shown_filter(wanted: RunFilter) -> RunFilter:
    """Only what an error says, and values in a payload, can be hidden."""
    if wanted.error is None and not wanted.payload:
        return wanted
    return ShownFilter(**msgspec.structs.asdict(wanted))


def checked_values(payload: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """`{"a.b": 5}` asks for 5 as b of a: the text of each value, by its path. Dots are always between names."""
    if len(payload) > _MOST_VALUES:
        raise Invalid(f"at most {_MOST_VALUES} values of a payload can be asked for at once")
    return {_path(name): scalar_text(value, name) for name, value in payload.items()}


def _path(name: str) -> tuple[str, ...]:
    keys = tuple(name.split("."))
    if len(keys) > _DEEPEST:
        raise Invalid(f"payload.{name:.80} is deeper than {_DEEPEST} names")
    for key in keys:
        checked_name(key, f"a name in payload.{name:.80}")
        if any(sign in key for sign in _UNSEARCHABLE):
            raise Invalid(f"payload.{name:.80} has a quote or a backslash in it, and cannot be searched for")
    return keys


def scalar_text(value: Any, name: str) -> str:
    """A text as it is; anything else as JSON writes it."""
    if isinstance(value, str):
        if len(value) > LONGEST_VALUE or "\x00" in value or not _is_text(value):
            raise Invalid(f"the value of payload.{name:.80} must be text of up to {LONGEST_VALUE} characters")
        return value
    if value is None or isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    raise Invalid(f"payload.{name:.80} must be compared with a text, a number, true, false or null: not {value!r:.80}")


def _is_text(value: str) -> bool:
    return value.isprintable() or not any(0xD800 <= ord(sign) < 0xE000 for sign in value)


def require_no_secret(payload: Mapping[str, Any]) -> None:
    """For those who are not shown secrets: they could try out what one is."""
    for name in payload:
        if any(names_secret(key) for key in name.split(".")):
            raise Forbidden(f"payload.{name:.80} names a secret, which only admins may look for")


def tells(run: Run, wanted: ShownFilter) -> bool:
    """Whether what is shown of a run says the error and the values that it was looked for by."""
    payload, error = Discreet(run).told()
    if wanted.error is not None and (error is None or wanted.error not in f"{error.type}: {error.message}"):
        return False
    return all(_text_at(payload, path) == text for path, text in checked_values(wanted.payload).items())


def _text_at(value: Any, path: Sequence[str]) -> str | None:
    for key in path:
        value = value.get(key, UNSET) if isinstance(value, dict) else UNSET
    return None if value is UNSET or isinstance(value, dict | list) else scalar_text(value, ".".join(path))
