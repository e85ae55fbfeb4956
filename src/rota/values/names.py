"""Validation of names and timeouts."""

from __future__ import annotations

import re
from datetime import timedelta

from rota.errors import Invalid
from rota.values.durations import Duration, parse_duration

LONGEST_NAME = 200
_UNFIT = re.compile(r"[\x00-\x1f\ud800-\udfff]")


def checked_name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_NAME:
        raise Invalid(f"{what} must be text of 1 to {LONGEST_NAME} characters, not {value!r:.80}")
    if _UNFIT.search(value):
        raise Invalid(f"{what} must not contain control characters or unpaired surrogates: {value!r:.80}")
    return value


def checked_timeout(value: Duration) -> timedelta:
    span = parse_duration(value, "timeout")
    if span <= timedelta(0):
        raise Invalid("a timeout must be longer than zero", hint="leave it out for no limit")
    return span
