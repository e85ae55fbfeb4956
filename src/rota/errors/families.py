"""The root of all errors, and the five families: each one HTTP status and one exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar, Self


class RotaError(Exception):
    """The root of all errors raised by rota."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def within(self, what: str) -> Self:
        """The same, told of whom it is said; not twice."""
        if what not in self.message:
            self.message = f"{what}: {self.message}"
        return self

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class NotFound(RotaError):
    """There is no such thing."""

    status, exit_code, code = 404, 4, "not-found"


class Conflict(RotaError):
    """What is asked does not fit the state of things."""

    status, exit_code, code = 409, 6, "conflict"


class Invalid(RotaError):
    """A value that is not possible."""

    status, exit_code, code = 422, 2, "invalid"


class Denied(RotaError):
    """Whoever asks may not."""

    status, exit_code, code = 403, 5, "denied"


class Unavailable(RotaError):
    """The database or the server cannot be reached, or does not serve."""

    status, exit_code, code = 503, 69, "unavailable"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the nearest known word, or the known words when they are few."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if 0 < len(names) <= 8:
        return "known: " + ", ".join(names)
    return None
