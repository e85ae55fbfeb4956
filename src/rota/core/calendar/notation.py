"""Notation of rules in documents: texts, durations and instants, and errors that name the key they are about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import ParamSpec, TypeVar

from rota.errors import BadTrigger, Invalid, RotaError
from rota.values.durations import parse_duration

P = ParamSpec("P")
T = TypeVar("T")


def at_key(where: str, key: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return `read(…)`; put `where` and `key` in front of the message of an error, unless it begins with the key."""
    try:
        return read(*args, **kwargs)
    except RotaError as error:
        prefix = "" if error.message.startswith((f"{key} ", f"{key}:")) else f"{key}: "
        error.message = f"{where}: {prefix}{error.message}"
        raise


def at_rule_key(where: str, key: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Like `at_key`, for the keys of a rule: an `Invalid` about a text or a list becomes a `BadTrigger`."""
    try:
        return at_key(where, key, read, *args, **kwargs)
    except Invalid as error:
        if type(error) is not Invalid:
            raise
        bad_trigger = BadTrigger(error.message, hint=error.hint)
        bad_trigger.field = key
        raise bad_trigger from None


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid(f"must be text, not {value!r:.80}")
    return value


def duration_of(value: object) -> timedelta:
    return parse_duration(value)  # type: ignore[arg-type]  # which refuses what is no text


def instant_of(value: object) -> datetime:
    """Read an RFC 3339 text, or take a datetime of TOML; either needs its offset from UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise Invalid(f"{value!r:.80} is no time", hint='write "2026-01-31T08:00:00Z"') from None
    if not isinstance(value, datetime):
        raise Invalid(f"{value!s:.80} is no time", hint='write "2026-01-31T08:00:00Z"')
    if value.tzinfo is None:
        raise Invalid(f"{value} has no zone", hint="end it with Z or with an offset such as +02:00")
    return value


def written_instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
